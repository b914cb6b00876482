/**
 * The wire as the simulator reads it: a second reading of the protocol, which shares no code with
 * the one under test, and texts by which what was asked, written, read and dispatched is compared.
 *
 * @module
 */

import { createHmac } from "node:crypto";
import type { Message, OutgoingMessage } from "../protocol/messages.ts";

const LENGTH_MAX = 16 * 1024 * 1024;
const HELLO_LENGTH_MAX = 64 * 1024;
const DEFAULT_TENANT = "00000000-0000-0000-0000-000000000001";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const UTF8 = new TextEncoder();
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The types of frames, by number. */
export const TYPE = {
  available: 1,
  availableBatch: 2,
  heartbeat: 3,
  hello: 4,
  dirtyBatch: 5,
  configSet: 10,
  configDelete: 11,
  maintenance: 40,
  popMaintenance: 41,
} as const;

/** One frame. */
export interface WireFrame {
  /** The type, from 0 to 255. */
  readonly type: number;
  /** What follows the type. */
  readonly payload: Uint8Array;
}

/** Takes a stream apart into frames. */
export class WireReader {
  #held: Uint8Array = new Uint8Array(0);
  #isFirst = true;
  #isBroken = false;

  /** Whether the stream has announced a length that no frame there may have. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Takes in bytes; the frames that they complete. Copies what it keeps. */
  push(bytes: Uint8Array): WireFrame[] {
    const all = new Uint8Array(this.#held.length + bytes.length);
    all.set(this.#held);
    all.set(bytes, this.#held.length);
    const view = new DataView(all.buffer);
    const frames: WireFrame[] = [];
    let start = 0;
    while (!this.#isBroken && all.length - start >= 4) {
      const length = view.getUint32(start);
      if (length < 1 || length > (this.#isFirst ? HELLO_LENGTH_MAX : LENGTH_MAX)) {
        this.#isBroken = true;
      } else if (all.length - start < 4 + length) {
        break;
      } else {
        this.#isFirst = false;
        frames.push({
          type: all[start + 4]!,
          payload: all.subarray(start + 5, start + 4 + length),
        });
        start += 4 + length;
      }
    }
    this.#held = all.subarray(start);
    return frames;
  }
}

/** Encodes a frame, whatever it says. */
export function frameBytes(type: number, payload: string | Uint8Array): Uint8Array {
  const body = typeof payload === "string" ? UTF8.encode(payload) : payload;
  const bytes = new Uint8Array(5 + body.length);
  new DataView(bytes.buffer).setUint32(0, 1 + body.length);
  bytes[4] = type;
  bytes.set(body, 5);
  return bytes;
}

/** The mac that a HELLO carries: lowercase hex, or nothing in open mode. */
export function macText(secret: string, nonce: string): string {
  return secret === "" ? "" : createHmac("sha256", secret).update(nonce).digest("hex");
}

/** Who says a HELLO, and the nonce by which it is known again. */
export interface WireHello {
  /** The id that it announces. */
  readonly serverId: string;
  /** Its nonce; empty where it has none. */
  readonly nonce: string;
}

/** Reads a first frame; null where it has to be refused. */
export function readHello(frame: WireFrame, secret: string): WireHello | null {
  const hello = frame.type === TYPE.hello ? objectIn(frame.payload) : null;
  if (hello === null) return null;
  const { server_id: serverId, nonce, mac } = hello;
  if (typeof serverId !== "string" || serverId === "") return null;
  if (secret === "") return { serverId, nonce: typeof nonce === "string" ? nonce : "" };
  if (typeof nonce !== "string" || nonce === "" || typeof mac !== "string") return null;
  return mac.toLowerCase() === macText(secret, nonce) ? { serverId, nonce } : null;
}

/** What a frame asks for, a text for each usable item; empty where there is nothing to act upon. */
export function textsOfFrame({ type, payload }: WireFrame): string[] {
  switch (type) {
    case TYPE.available:
    case TYPE.configSet:
    case TYPE.configDelete:
    case TYPE.maintenance:
    case TYPE.popMaintenance:
      return usable([textOfItem(type, objectIn(payload))]);
    case TYPE.availableBatch:
    case TYPE.dirtyBatch: {
      const items = objectIn(payload)?.["items"];
      if (!Array.isArray(items)) return [];
      return usable(items.map((item) => textOfItem(type, asObject(item))));
    }
    default:
      return [];
  }
}

const MESSAGE_TYPES: Readonly<Record<Message["type"], number>> = {
  message_available: TYPE.available,
  hotlist_dirty: TYPE.dirtyBatch,
  queue_config_set: TYPE.configSet,
  queue_config_delete: TYPE.configDelete,
  maintenance_mode: TYPE.maintenance,
  pop_maintenance_mode: TYPE.popMaintenance,
};

/** What a message that was dispatched asks for, in the texts of {@linkcode textsOfFrame}. */
export function textsOfMessage(message: Message): string[] {
  const type = MESSAGE_TYPES[message.type];
  switch (message.type) {
    case "message_available":
    case "hotlist_dirty":
      return message.items.map((item) => hintText(type, item));
    case "queue_config_set":
    case "queue_config_delete":
      return [hintText(type, message)];
    default:
      return [`${type} ${message.enabled}`];
  }
}

/** What a message to send asks for, in the same texts: what is left out has its default. */
export function textsOfOutgoing(message: OutgoingMessage): string[] {
  const type = MESSAGE_TYPES[message.type];
  switch (message.type) {
    case "message_available":
    case "hotlist_dirty":
      return message.items.map((item) => hintText(type, named(item)));
    case "queue_config_set":
    case "queue_config_delete":
      return [hintText(type, named(message))];
    default:
      return [`${type} ${message.enabled}`];
  }
}

/** The parts of a hint, of any kind. */
interface Hint {
  readonly queue: string;
  readonly partition?: string | undefined;
  readonly tenant?: string | undefined;
  readonly group?: string | undefined;
}

/** A hint whose tenant is named, as every hint is that is sent (TEN-1). */
function named(hint: Hint): Hint {
  return { ...hint, tenant: hint.tenant ?? DEFAULT_TENANT };
}

function hintText(type: number, hint: Hint): string {
  const tenant = hint.tenant === undefined || hint.tenant === DEFAULT_TENANT
    ? hint.tenant === undefined ? "?" : ""
    : hint.tenant;
  return `${type} ${hint.queue}/${hint.partition ?? ""}/${tenant}/${hint.group ?? ""}`;
}

function textOfItem(type: number, item: Record<string, unknown> | null): string | null {
  if (item === null) return null;
  if (type === TYPE.maintenance || type === TYPE.popMaintenance) {
    return typeof item["enabled"] === "boolean" ? `${type} ${item["enabled"]}` : null;
  }
  const { queue, partition, group } = item;
  if (typeof queue !== "string") return null;
  const given = item["tenant"];
  const tenant = typeof given === "string" && UUID.test(given) ? given.toLowerCase() : undefined;
  if (type === TYPE.configSet || type === TYPE.configDelete) {
    return hintText(type, { queue, tenant });
  }
  if (queue === "" || (partition !== undefined && typeof partition !== "string")) return null;
  if (type !== TYPE.dirtyBatch) return hintText(TYPE.available, { queue, partition, tenant });
  return hintText(type, {
    queue,
    partition,
    tenant,
    group: typeof group === "string" ? group : undefined,
  });
}

function usable(texts: readonly (string | null)[]): string[] {
  return texts.filter((text) => text !== null);
}

function objectIn(payload: Uint8Array): Record<string, unknown> | null {
  try {
    return asObject(JSON.parse(STRICT_UTF8.decode(payload)));
  } catch {
    // No JSON: unusable by FRM-10, which is an answer and no failure.
    return null;
  }
}

function asObject(value: unknown): Record<string, unknown> | null {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? value as Record<string, unknown> : null;
}
