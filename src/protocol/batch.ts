/**
 * Batches: how many items go into one frame.
 *
 * @module
 */

import { FRAME_HEADER_BYTES } from "./frame.ts";

/** The most bytes that a frame of several items may have, header included (FRM-12). */
export const BATCH_FRAME_BYTES_MAX = 1_048_576;

/** The bytes of a batch's payload around its items. */
export const BATCH_FRAMING_BYTES: number = '{"items":[]}'.length;

/** The most bytes that one UTF-16 code unit takes in UTF-8. */
export const UNIT_BYTES_MAX = 3;

/** The payload of a batch of items that are JSON text. */
export function batchText(texts: readonly string[]): string {
  return `{"items":[${texts.join(",")}]}`;
}

/**
 * Parts the items of a batch, as JSON text, into groups whose frames stay within
 * {@linkcode BATCH_FRAME_BYTES_MAX}, in order. An item that exceeds it alone gets a group of its own.
 */
export function groupByBytes(texts: readonly string[]): (readonly string[])[] {
  if (texts.length === 0) return [];
  const room = BATCH_FRAME_BYTES_MAX - FRAME_HEADER_BYTES - BATCH_FRAMING_BYTES;
  let units = 0;
  for (const text of texts) units += text.length + 1;
  // Most batches are far too small for an exact count to matter.
  if (units * UNIT_BYTES_MAX <= room) return [texts];
  const groups: (readonly string[])[] = [];
  let first = 0;
  let bytes = 0;
  for (const [index, text] of texts.entries()) {
    const itemBytes = utf8Bytes(text);
    if (index > first && bytes + itemBytes > room) {
      groups.push(texts.slice(first, index));
      first = index;
      bytes = 0;
    }
    bytes += itemBytes + 1;
  }
  groups.push(texts.slice(first));
  return groups;
}

/** The bytes of JSON text in UTF-8. It holds no lone surrogate. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // Each half of a pair counts two of the pair's four bytes.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return bytes;
}
