/**
 * One spooled message, and the bytes that it becomes.
 *
 * @module
 */

/** A partition of a tenant's queue, by name. */
export interface SpoolPartition {
  /** The tenant. */
  readonly tenant: string;
  /** The queue. */
  readonly queue: string;
  /** The partition. */
  readonly partition: string;
}

/** One message that waits for PostgreSQL. */
export interface SpoolRecord extends SpoolPartition {
  /** Given before the first attempt to store it. */
  readonly messageId: string;
  /** The producer's name for it. */
  readonly transactionId: string;
  /** The producer's own JSON text, kept to the byte. */
  readonly payload: string;
  /**
   * When it was accepted: milliseconds since 1970 by the wall clock. It is the time that counts for
   * duplicates.
   */
  readonly acceptedAt: number;
}

const NEWLINE = 0x0a;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The names and the payload as bytes: a line of JSON (which holds no newline of its own), then the
 * payload as it is. `acceptedAt` is not among them: it stands in the frame's header.
 *
 * @throws {TypeError} If `payload` holds half of a surrogate pair, which UTF-8 cannot carry. Text that
 * was decoded from UTF-8 never does.
 */
export function encodeRecord(record: SpoolRecord): Uint8Array<ArrayBuffer> {
  const { tenant, queue, partition, messageId, transactionId, payload } = record;
  if (!payload.isWellFormed()) {
    throw new TypeError("A payload must be well-formed text; escape lone surrogates as \\uXXXX");
  }
  const names = JSON.stringify([tenant, queue, partition, messageId, transactionId]);
  return encoder.encode(`${names}\n${payload}`);
}

/**
 * The record that the bytes spell.
 *
 * @throws {TypeError} or {@linkcode SyntaxError} where they spell none.
 */
export function decodeRecord(bytes: Uint8Array, acceptedAt: number): SpoolRecord {
  const newline = bytes.indexOf(NEWLINE);
  if (newline < 0) throw new SyntaxError("A spooled record needs a line of names, and has none");
  const names: unknown = JSON.parse(decoder.decode(bytes.subarray(0, newline)));
  if (!isNames(names)) throw new SyntaxError("A spooled record needs five names, and has others");
  const [tenant, queue, partition, messageId, transactionId] = names;
  const payload = decoder.decode(bytes.subarray(newline + 1));
  return { tenant, queue, partition, messageId, transactionId, payload, acceptedAt };
}

function isNames(value: unknown): value is [string, string, string, string, string] {
  return Array.isArray(value) && value.length === 5 &&
    value.every((name) => typeof name === "string");
}
