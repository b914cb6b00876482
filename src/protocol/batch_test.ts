import assert from "node:assert/strict";
import {
  BATCH_FRAME_BYTES_MAX,
  BATCH_FRAMING_BYTES,
  batchText,
  groupByBytes,
  utf8Bytes,
} from "./batch.ts";
import { FRAME_HEADER_BYTES } from "./frame.ts";

/** The bytes that two items may have so that they and their comma just fill a frame. */
const PAIR_BYTES = BATCH_FRAME_BYTES_MAX - FRAME_HEADER_BYTES - BATCH_FRAMING_BYTES - 1;

Deno.test("items that just fill a frame stay together, and one byte more parts them", () => {
  const small = "x".repeat(1000);
  for (const unit of ["x", "é"]) {
    const bytes = PAIR_BYTES - small.length;
    const large = unit.repeat(bytes / utf8Bytes(unit)) + "x".repeat(bytes % utf8Bytes(unit));
    const [group, ...others] = groupByBytes([small, large]);
    assert.deepEqual(group, [small, large]);
    assert.deepEqual(others, []);
    assert.equal(utf8Bytes(batchText([small, large])) + FRAME_HEADER_BYTES, BATCH_FRAME_BYTES_MAX);
    assert.deepEqual(groupByBytes([small, `${large}x`]), [[small], [`${large}x`]]);
  }
});

Deno.test("the bytes of a text are counted as UTF-8 has them", () => {
  for (const text of ["", "a", "\x7f\x80", "\u07ff\u0800", "\ud7ff\ue000\uffff", "\ud83d\ude00!"]) {
    assert.equal(utf8Bytes(text), new TextEncoder().encode(text).length);
  }
});
