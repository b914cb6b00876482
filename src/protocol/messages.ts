/**
 * What frames say, as typed values: the ones received, and the ones to send.
 *
 * @module
 */

import { type Frame, FRAME_TYPE } from "./frame.ts";
import { isObject, type JsonObject, parseObject } from "./json.ts";
import { parseTenant } from "./tenant.ts";

export { FrameWriter } from "./frame_writer.ts";
export { hintText } from "./message_text.ts";

/** A partition that messages wait in. */
export interface QueueHint {
  /** The queue's name, never empty. */
  readonly queue: string;
  /** The partition's name; `""` where the peer named none. */
  readonly partition: string;
  /** The tenant as a lowercase UUID, or `undefined` for every tenant with such a queue (TEN-2). */
  readonly tenant: string | undefined;
}

/** A partition whose place in the hot list may have changed. */
export interface DirtyHint extends QueueHint {
  /** The consumer group that it concerns, or `undefined` for every group. */
  readonly group: string | undefined;
}

/** What a peer said. */
export type Message =
  | { readonly type: "message_available"; readonly items: readonly QueueHint[] }
  | { readonly type: "hotlist_dirty"; readonly items: readonly DirtyHint[] }
  | {
    readonly type: "queue_config_set" | "queue_config_delete";
    readonly queue: string;
    readonly tenant: string | undefined;
  }
  | { readonly type: "maintenance_mode" | "pop_maintenance_mode"; readonly enabled: boolean };

/** A partition to announce. */
export interface OutgoingHint {
  /** The queue's name, not empty. */
  readonly queue: string;
  /** The partition's name, `""` by default. */
  readonly partition?: string | undefined;
  /** The tenant, a UUID; {@linkcode DEFAULT_TENANT} by default, which is then named (TEN-1). */
  readonly tenant?: string | undefined;
}

/** A partition to announce as dirty. */
export interface OutgoingDirtyHint extends OutgoingHint {
  /** The consumer group that it concerns; every group by default, and where it is `""`. */
  readonly group?: string | undefined;
}

/** What can be said to peers. */
export type OutgoingMessage =
  | { readonly type: "message_available"; readonly items: readonly OutgoingHint[] }
  | { readonly type: "hotlist_dirty"; readonly items: readonly OutgoingDirtyHint[] }
  | {
    readonly type: "queue_config_set" | "queue_config_delete";
    /** The queue's name. */
    readonly queue: string;
    /** The tenant, a UUID; {@linkcode DEFAULT_TENANT} by default. */
    readonly tenant?: string | undefined;
  }
  | { readonly type: "maintenance_mode" | "pop_maintenance_mode"; readonly enabled: boolean };

/**
 * Reads what a frame says, tolerantly: unknown keys do not matter, and an item that cannot be used
 * is left out of its batch (FRM-9 to FRM-11). Never throws.
 *
 * @param frame Any frame.
 * @returns The message, which holds no view of the frame, or `undefined` where there is nothing to
 * act upon: an unknown type, a HELLO or HEARTBEAT, an unusable payload, a batch without a usable item.
 *
 * @example
 * ```ts
 * import { decodeMessage, encodeFrame, FRAME_TYPE, FrameDecoder } from "@queen/mesh";
 * import assert from "node:assert/strict";
 *
 * const decoder = new FrameDecoder();
 * decoder.push(encodeFrame(FRAME_TYPE.MESSAGE_AVAILABLE, '{"queue":"orders","new":"key"}'));
 * const frame = decoder.next();
 * assert(frame !== undefined);
 * assert.deepEqual(decodeMessage(frame), {
 *   type: "message_available",
 *   items: [{ queue: "orders", partition: "", tenant: undefined }],
 * });
 * ```
 */
export function decodeMessage(frame: Frame): Message | undefined {
  const read = READERS.get(frame.type);
  if (read === undefined) return undefined;
  const payload = parseObject(frame.payload);
  return payload === undefined ? undefined : read(payload);
}

type Reader = (payload: JsonObject) => Message | undefined;

const READERS: ReadonlyMap<number, Reader> = new Map<number, Reader>([
  [FRAME_TYPE.MESSAGE_AVAILABLE, readMessageAvailable],
  [FRAME_TYPE.MESSAGE_AVAILABLE_BATCH, readMessageAvailableBatch],
  [FRAME_TYPE.HOTLIST_DIRTY_BATCH, readHotlistDirtyBatch],
  [FRAME_TYPE.QUEUE_CONFIG_SET, (payload) => readQueueConfig("queue_config_set", payload)],
  [FRAME_TYPE.QUEUE_CONFIG_DELETE, (payload) => readQueueConfig("queue_config_delete", payload)],
  [FRAME_TYPE.MAINTENANCE_MODE_SET, (payload) => readMode("maintenance_mode", payload)],
  [FRAME_TYPE.POP_MAINTENANCE_MODE_SET, (payload) => readMode("pop_maintenance_mode", payload)],
]);

function readMessageAvailable(payload: JsonObject): Message | undefined {
  const hint = readHint(payload);
  return hint && { type: "message_available", items: [hint] };
}

function readMessageAvailableBatch(payload: JsonObject): Message | undefined {
  const items = readItems(payload, readHint);
  return items && { type: "message_available", items };
}

function readHotlistDirtyBatch(payload: JsonObject): Message | undefined {
  const items = readItems(payload, readDirtyHint);
  return items && { type: "hotlist_dirty", items };
}

function readQueueConfig(
  type: "queue_config_set" | "queue_config_delete",
  { queue, tenant }: JsonObject,
): Message | undefined {
  return typeof queue === "string" ? { type, queue, tenant: parseTenant(tenant) } : undefined;
}

function readMode(
  type: "maintenance_mode" | "pop_maintenance_mode",
  { enabled }: JsonObject,
): Message | undefined {
  return typeof enabled === "boolean" ? { type, enabled } : undefined;
}

/** The usable items of a batch, or `undefined` where there is none. */
function readItems<Item>(
  { items }: JsonObject,
  read: (item: JsonObject) => Item | undefined,
): Item[] | undefined {
  if (!Array.isArray(items)) return undefined;
  const usable: Item[] = [];
  for (const item of items) {
    const value = isObject(item) ? read(item) : undefined;
    if (value !== undefined) usable.push(value);
  }
  return usable.length > 0 ? usable : undefined;
}

function readHint({ queue, partition = "", tenant }: JsonObject): QueueHint | undefined {
  if (typeof queue !== "string" || queue === "" || typeof partition !== "string") return undefined;
  return { queue, partition, tenant: parseTenant(tenant) };
}

function readDirtyHint(item: JsonObject): DirtyHint | undefined {
  const hint = readHint(item);
  if (hint === undefined) return undefined;
  const { group } = item;
  const { queue, partition, tenant } = hint;
  return {
    queue,
    partition,
    tenant,
    group: typeof group === "string" && group !== "" ? group : undefined,
  };
}
