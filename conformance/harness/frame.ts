/**
 * The wire as the suite reads and writes it: written from the protocol alone, so that a fault of an
 * implementation, ours included, is not repeated by its judge.
 *
 * @module
 */

import { Buffer } from "node:buffer";

/** The frame types by name. */
export const FRAME_TYPES = {
  MESSAGE_AVAILABLE: 1,
  MESSAGE_AVAILABLE_BATCH: 2,
  HEARTBEAT: 3,
  HELLO: 4,
  HOTLIST_DIRTY_BATCH: 5,
  QUEUE_CONFIG_SET: 10,
  QUEUE_CONFIG_DELETE: 11,
  MAINTENANCE_MODE_SET: 40,
  POP_MAINTENANCE_MODE_SET: 41,
} as const;

/** The longest `length` that a frame may announce, in bytes (FRM-3, FRM-4). */
export const LENGTH_MAX = 16 * 1024 * 1024;

const NAMES = new Map<number, string>(
  Object.entries(FRAME_TYPES).map(([name, type]) => [type, name]),
);

/** One frame as it stood on the wire. */
export interface Frame {
  /** The type byte. */
  readonly type: number;
  /** The payload's bytes. */
  readonly payload: Uint8Array;
  /** The payload read as JSON, or undefined where it is none. */
  readonly json: unknown;
}

/**
 * Encodes a frame.
 *
 * @param type The type byte.
 * @param payload Bytes as they are, a text as its UTF-8, nothing as no bytes, any other value as JSON.
 */
export function frame(type: number, payload?: unknown): Uint8Array {
  const body = payload === undefined
    ? new Uint8Array()
    : payload instanceof Uint8Array
    ? payload
    : Buffer.from(typeof payload === "string" ? payload : JSON.stringify(payload));
  const bytes = Buffer.alloc(5 + body.length);
  bytes.writeUInt32BE(1 + body.length, 0);
  bytes[4] = type;
  bytes.set(body, 5);
  return bytes;
}

/** The four bytes that announce a frame of this length, and a type byte behind them. */
export function announcement(length: number, type: number = FRAME_TYPES.HEARTBEAT): Uint8Array {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt32BE(length, 0);
  bytes[4] = type;
  return bytes;
}

/** Puts byte strings behind one another. */
export function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

/** A frame type as its name, or as a number where it has none. */
export function typeName(type: number): string {
  return NAMES.get(type) ?? `type ${type}`;
}

/** A stream's broken framing. */
export class FramingError extends Error {
  /** The error's name. */
  override readonly name = "FramingError";
}

/** Puts a stream's chunks together into frames. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #held = 0;

  /** How many bytes have come of a frame that is not complete. */
  get pendingBytes(): number {
    return this.#held;
  }

  /**
   * Takes a chunk and gives the frames that it completes.
   *
   * @throws {FramingError} If a length is 0 or above 16 MiB.
   */
  push(chunk: Uint8Array): Frame[] {
    this.#chunks.push(Buffer.from(chunk));
    this.#held += chunk.length;
    const frames: Frame[] = [];
    for (let length = this.#announced(); length !== undefined; length = this.#announced()) {
      if (length === 0 || length > LENGTH_MAX) {
        throw new FramingError(`a frame announces a length of ${length}, not 1 to ${LENGTH_MAX}`);
      }
      if (this.#held < 4 + length) break;
      const all = this.#gathered();
      const payload = Buffer.from(all.subarray(5, 4 + length));
      frames.push({ type: all[4]!, payload, json: parsed(payload) });
      this.#chunks = [all.subarray(4 + length)];
      this.#held -= 4 + length;
    }
    return frames;
  }

  #announced(): number | undefined {
    if (this.#held < 4) return undefined;
    if (this.#chunks[0]!.length < 4) this.#gathered();
    return this.#chunks[0]!.readUInt32BE(0);
  }

  #gathered(): Buffer {
    const all = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}

/** How many characters of a payload a transcript shows. */
const SHOWN_MAX = 300;

/** A frame in one line for people. */
export function describeFrame({ type, payload, json }: Frame): string {
  const name = NAMES.has(type) ? `${typeName(type)} (type ${type})` : typeName(type);
  if (payload.length === 0) return `${name}, no payload`;
  const text = json === undefined
    ? `not JSON: ${describeBytes(payload)}`
    : Buffer.from(payload).toString("utf8");
  return text.length <= SHOWN_MAX
    ? `${name} ${text}`
    : `${name} ${text.slice(0, SHOWN_MAX)}... (${payload.length} bytes)`;
}

/** Bytes in one line for people: how many, and how they begin. */
export function describeBytes(bytes: Uint8Array): string {
  const shown = Buffer.from(bytes.subarray(0, 24)).toString("hex").replace(/../g, "$& ").trimEnd();
  const rest = bytes.length > 24 ? " ..." : "";
  return `${bytes.length} ${bytes.length === 1 ? "byte" : "bytes"}: ${shown}${rest}`;
}

/** Any bytes that are sent, in one line for people: as frames where they are whole frames. */
export function describeSent(bytes: Uint8Array): string {
  const reader = new FrameReader();
  try {
    const frames = reader.push(bytes);
    if (frames.length > 0 && reader.pendingBytes === 0) {
      const [first, ...others] = frames;
      if (others.length === 0) return describeFrame(first!);
      if (frames.length <= 4) return frames.map(describeFrame).join(" + ");
      return `${frames.length} frames, the first ${describeFrame(first!)}`;
    }
  } catch (error) {
    if (!(error instanceof FramingError)) throw error;
  }
  return describeBytes(bytes);
}

function parsed(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString("utf8"));
  } catch {
    return undefined;
  }
}
