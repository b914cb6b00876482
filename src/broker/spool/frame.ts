/**
 * How a record lies in a file.
 *
 * ```text
 *  0  marker      16 bytes, the id of the log
 * 16  checksum    CRC-32C of everything else, marker, header and body
 * 20  length      bytes of the body
 * 24  position    counts the records of the log, from 1
 * 32  acceptedAt  milliseconds since 1970
 * 40  lane        a hash that stands for the partition
 * 48  body        the record, sealed where there is a key
 * ```
 *
 * Numbers are big-endian. The marker is how a reader finds the next record after a damaged one. It is
 * random and shown to no producer, so that no payload can pretend to be a record.
 *
 * @module
 */

import { crc32c } from "./crc32c.ts";

/** The bytes of a frame before its body. */
export const FRAME_HEADER_BYTES = 48;

/** The bytes of a marker. */
export const MARKER_BYTES = 16;

const CHECKSUM_AT = 16;
const CHECKED_FROM = 20;
const LENGTH_AT = 20;
const POSITION_AT = 24;
const ACCEPTED_AT = 32;
const LANE_AT = 40;

/** What a frame says beside its body. */
export interface FrameHeader {
  /** The record's number in its log, from 1; higher for what was appended later. */
  readonly position: number;
  /** When the record was accepted, in milliseconds since 1970. */
  readonly acceptedAt: number;
  /** Stands for the partition: the same for the same one. Below 2^48. */
  readonly lane: number;
}

/** A frame that has been read. */
export interface Frame extends FrameHeader {
  /** The record, sealed where there is a key. */
  readonly body: Uint8Array<ArrayBuffer>;
}

/** Writes a frame at `offset` of `target` and returns where it ends. */
export function writeFrame(
  target: Uint8Array,
  offset: number,
  { marker, body, position, acceptedAt, lane }: Frame & { readonly marker: Uint8Array },
): number {
  const end = offset + FRAME_HEADER_BYTES + body.length;
  const bytes = target.subarray(offset, end);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  bytes.set(marker);
  view.setUint32(LENGTH_AT, body.length);
  view.setBigUint64(POSITION_AT, BigInt(position));
  view.setFloat64(ACCEPTED_AT, acceptedAt);
  view.setBigUint64(LANE_AT, BigInt(lane));
  bytes.set(body, FRAME_HEADER_BYTES);
  view.setUint32(CHECKSUM_AT, checksum(bytes));
  return end;
}

/** The length of the whole frame of which `header` is the beginning, as it claims. */
export function frameLength(header: Uint8Array): number {
  return FRAME_HEADER_BYTES + viewOf(header).getUint32(LENGTH_AT);
}

/** The frame that `bytes` are in whole, or undefined where it is damaged. Its body is a copy. */
export function readFrame(bytes: Uint8Array): Frame | undefined {
  const view = viewOf(bytes);
  if (view.getUint32(CHECKSUM_AT) !== checksum(bytes)) return undefined;
  return {
    position: Number(view.getBigUint64(POSITION_AT)),
    acceptedAt: view.getFloat64(ACCEPTED_AT),
    lane: Number(view.getBigUint64(LANE_AT)),
    body: bytes.slice(FRAME_HEADER_BYTES) as Uint8Array<ArrayBuffer>,
  };
}

/** Whether a marker stands at `offset`. */
export function isMarkerAt(bytes: Uint8Array, offset: number, marker: Uint8Array): boolean {
  for (let i = 0; i < MARKER_BYTES; i++) {
    if (bytes[offset + i] !== marker[i]) return false;
  }
  return true;
}

function checksum(bytes: Uint8Array): number {
  return crc32c(bytes.subarray(CHECKED_FROM), crc32c(bytes.subarray(0, CHECKSUM_AT)));
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
