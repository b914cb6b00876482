/**
 * Frames: a length, a type and a payload, as bytes.
 *
 *     u32 big-endian length | u8 type | payload
 *
 * @module
 */

/** The largest `length` that a frame may announce: 16 MiB, type byte and payload together (FRM-3). */
export const FRAME_LENGTH_MAX = 16_777_216;

/** The bytes that precede a payload: the length and the type. */
export const FRAME_HEADER_BYTES = 5;

/** The bytes of the length field, which the length itself does not count (FRM-1). */
const LENGTH_BYTES = 4;

/** The bytes that a decoder reads at once, unless told otherwise. */
const CHUNK_BYTES = 65_536;

/** The bytes of a decoder's first buffer: a HELLO fits, and who says none costs no more. */
const FIRST_BYTES = 1024;

/** The frame types that this protocol knows. A frame of any other type is skipped (FRM-9). */
export const FRAME_TYPE = {
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

/** One frame of a stream. */
export interface Frame {
  /** The type byte, from 0 to 255; see {@linkcode FRAME_TYPE} for those that are known. */
  readonly type: number;
  /** The payload, which may be empty (FRM-8). */
  readonly payload: Uint8Array;
}

/**
 * A stream announced a frame that cannot be: of length 0 (FRM-2) or above the maximum (FRM-3).
 * Nothing after it can be told apart any more, so the connection has to be closed.
 */
export class FrameError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "FrameError";
  /** The length that was announced. */
  readonly length: number;

  /**
   * Says which rule the stream broke.
   *
   * @param length The length that was announced.
   * @param lengthMax The largest length allowed.
   */
  constructor(length: number, lengthMax: number) {
    super(
      `A frame's length must be from 1 to ${lengthMax}, got ${length}: the connection must be closed`,
    );
    this.length = length;
  }
}

/** How a {@linkcode FrameDecoder} reads. */
export interface FrameDecoderOptions {
  /** The largest length to accept, at most and by default {@linkcode FRAME_LENGTH_MAX}. */
  readonly lengthMax?: number;
  /**
   * The buffer's normal size: how much one read can take. At least 5, by default 64 KiB. The first
   * frame comes into a smaller one, of at most 1 KiB.
   */
  readonly chunkBytes?: number;
}

/**
 * Takes a stream apart into frames, whatever its segmentation (FRM-5, FRM-6).
 *
 * Read into {@linkcode FrameDecoder.space | space}, report the count by
 * {@linkcode FrameDecoder.filled | filled}, then call {@linkcode FrameDecoder.next | next} until it
 * gives `undefined`. Payloads are views into the buffer and nothing is copied for a frame: the rest
 * of an incomplete one is moved to the front once.
 *
 * The buffer grows by doubling as the bytes of a large frame really arrive, never beyond that
 * frame, and returns to its normal size after it. A length that is refused allocates nothing.
 *
 * @example
 * ```ts
 * import { encodeFrame, FRAME_TYPE, FrameDecoder } from "@queen/mesh";
 * import assert from "node:assert/strict";
 *
 * const bytes = encodeFrame(FRAME_TYPE.MAINTENANCE_MODE_SET, '{"enabled":true}');
 * const decoder = new FrameDecoder();
 * decoder.push(bytes.subarray(0, 7));
 * assert.equal(decoder.next(), undefined);
 * decoder.push(bytes.subarray(7));
 * assert.equal(decoder.next()?.type, 40);
 * assert.equal(decoder.next(), undefined);
 * ```
 */
export class FrameDecoder {
  readonly #chunkBytes: number;
  #lengthMax: number = FRAME_LENGTH_MAX;
  #buffer: Uint8Array<ArrayBuffer>;
  /** Where the next frame begins. */
  #start = 0;
  /** Where the bytes held end. */
  #end = 0;

  /**
   * Holds nothing yet.
   *
   * @throws {RangeError} Where an option is out of its bounds.
   */
  constructor(options: FrameDecoderOptions = {}) {
    const { lengthMax = FRAME_LENGTH_MAX, chunkBytes = CHUNK_BYTES } = options;
    if (!Number.isInteger(chunkBytes) || chunkBytes < FRAME_HEADER_BYTES) {
      throw new RangeError(
        `chunkBytes must be an integer of at least ${FRAME_HEADER_BYTES}, got ${chunkBytes}`,
      );
    }
    this.lengthMax = lengthMax;
    this.#chunkBytes = chunkBytes;
    this.#buffer = new Uint8Array(Math.min(chunkBytes, FIRST_BYTES));
  }

  /**
   * The largest length that {@linkcode FrameDecoder.next | next} accepts. A change concerns every
   * frame that it has not given yet.
   *
   * @throws {RangeError} Where it is set to anything but an integer from 1 to
   * {@linkcode FRAME_LENGTH_MAX}.
   */
  get lengthMax(): number {
    return this.#lengthMax;
  }

  set lengthMax(lengthMax: number) {
    if (!Number.isInteger(lengthMax) || lengthMax < 1 || lengthMax > FRAME_LENGTH_MAX) {
      throw new RangeError(
        `lengthMax must be an integer from 1 to ${FRAME_LENGTH_MAX}, got ${lengthMax}`,
      );
    }
    this.#lengthMax = lengthMax;
  }

  /**
   * Whether bytes are held that have not come out as a frame: once
   * {@linkcode FrameDecoder.next | next} has given `undefined`, those of an incomplete frame. A
   * stream that ends then has ended inside a frame (FRM-7).
   */
  get partial(): boolean {
    return this.#end > this.#start;
  }

  /** The size of the buffer, in bytes: what the decoder takes of the memory. */
  get bufferBytes(): number {
    return this.#buffer.length;
  }

  /**
   * A view to read into, with at least one byte. Payloads given before are invalid from here on,
   * and so is a view that was given before.
   */
  space(): Uint8Array<ArrayBuffer> {
    if (this.#start > 0 || this.#end === this.#buffer.length) this.#reserve(1);
    return this.#buffer.subarray(this.#end);
  }

  /**
   * Takes over what was read into the front of {@linkcode FrameDecoder.space | space}.
   *
   * @param count How many bytes were read.
   * @throws {RangeError} Where the view was not that large.
   */
  filled(count: number): void {
    const room = this.#buffer.length - this.#end;
    if (!Number.isInteger(count) || count < 0 || count > room) {
      throw new RangeError(`count must be an integer from 0 to ${room}, got ${count}`);
    }
    this.#end += count;
  }

  /**
   * Takes over a copy of bytes that were read elsewhere. Payloads given before are invalid from
   * here on.
   */
  push(chunk: Uint8Array): void {
    if (chunk.length > this.#buffer.length - this.#end) this.#reserve(chunk.length);
    this.#buffer.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /**
   * The next complete frame, or `undefined` where more bytes are needed.
   *
   * @returns A frame whose payload is valid until more bytes are taken in.
   * @throws {FrameError} Where the stream announces a length of 0 or above the maximum, and at
   * every later call too. Frames before it have been given.
   */
  next(): Frame | undefined {
    const held = this.#end - this.#start;
    if (held < LENGTH_BYTES) return undefined;
    const length = this.#announced();
    if (length === 0 || length > this.#lengthMax) throw new FrameError(length, this.#lengthMax);
    if (held < LENGTH_BYTES + length) return undefined;
    const typeAt = this.#start + LENGTH_BYTES;
    this.#start = typeAt + length;
    return {
      type: this.#buffer[typeAt]!,
      payload: this.#buffer.subarray(typeAt + 1, this.#start),
    };
  }

  /** The length field of the next frame, whose bytes must be held. */
  #announced(): number {
    const buffer = this.#buffer;
    const at = this.#start;
    return ((buffer[at]! << 24) | (buffer[at + 1]! << 16) | (buffer[at + 2]! << 8) |
      buffer[at + 3]!) >>> 0;
  }

  /** Moves what is held to the front of a buffer that has room for `count` more bytes. */
  #reserve(count: number): void {
    const held = this.#end - this.#start;
    const length = held < LENGTH_BYTES ? 0 : this.#announced();
    // A length that will be refused must not size anything.
    const frameBytes = length > this.#lengthMax ? 0 : LENGTH_BYTES + length;
    let size = this.#buffer.length;
    if (held + count > size) {
      const wanted = frameBytes > held ? frameBytes : held + this.#chunkBytes;
      size = Math.max(held + count, Math.min(2 * size, wanted));
    } else if (Math.max(held + count, frameBytes) <= this.#chunkBytes) {
      size = this.#chunkBytes;
    }
    if (size === this.#buffer.length) {
      this.#buffer.copyWithin(0, this.#start, this.#end);
    } else {
      const buffer = new Uint8Array(size);
      buffer.set(this.#buffer.subarray(this.#start, this.#end));
      this.#buffer = buffer;
    }
    this.#start = 0;
    this.#end = held;
  }
}

/**
 * Encodes one frame into bytes of its own.
 *
 * @param type The type byte, from 0 to 255.
 * @param payload The payload; text is encoded as UTF-8.
 * @returns The complete frame.
 * @throws {RangeError} Where the type is no byte, or the frame would be longer than
 * {@linkcode FRAME_LENGTH_MAX}.
 *
 * @example
 * ```ts
 * import { encodeFrame, FRAME_TYPE } from "@queen/mesh";
 * import assert from "node:assert/strict";
 *
 * assert.deepEqual([...encodeFrame(FRAME_TYPE.HEARTBEAT, "{}")], [0, 0, 0, 3, 3, 123, 125]);
 * ```
 */
export function encodeFrame(type: number, payload: string | Uint8Array): Uint8Array<ArrayBuffer> {
  if (!Number.isInteger(type) || type < 0 || type > 255) {
    throw new RangeError(`A frame's type must be an integer from 0 to 255, got ${type}`);
  }
  // Text is never shorter in UTF-8, so an excess shows before anything is encoded.
  checkLength(1 + payload.length);
  const bytes = typeof payload === "string" ? new TextEncoder().encode(payload) : payload;
  checkLength(1 + bytes.length);
  const frame = new Uint8Array(FRAME_HEADER_BYTES + bytes.length);
  writeFrameHeader(frame, { type, payloadBytes: bytes.length });
  frame.set(bytes, FRAME_HEADER_BYTES);
  return frame;
}

/** What a frame's header says. */
export interface FrameHeader {
  /** The type byte. */
  readonly type: number;
  /** The bytes of the payload alone. */
  readonly payloadBytes: number;
}

/** Writes the length and the type to the front of `frame`. */
export function writeFrameHeader(frame: Uint8Array, header: FrameHeader): void {
  const length = 1 + header.payloadBytes;
  frame[0] = length >>> 24;
  frame[1] = length >>> 16;
  frame[2] = length >>> 8;
  frame[3] = length;
  frame[4] = header.type;
}

/** Refuses a frame that no peer would take (FRM-12). */
function checkLength(length: number): void {
  if (length > FRAME_LENGTH_MAX) {
    throw new RangeError(
      `A frame's length must be at most ${FRAME_LENGTH_MAX}, got at least ${length}: send less at once`,
    );
  }
}
