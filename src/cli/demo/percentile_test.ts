import assert from "node:assert/strict";
import { percentile } from "./percentile.ts";

Deno.test("percentile takes the nearest rank, in whatever order the values come", () => {
  const values = [40, 15, 50, 20, 35];
  assert.deepEqual([5, 30, 40, 50, 100].map((percent) => percentile(values, percent)), [
    15,
    20,
    20,
    35,
    50,
  ]);
  assert.deepEqual(values, [40, 15, 50, 20, 35]);
});

Deno.test("percentile 99 of 200 values leaves the two greatest out", () => {
  const values = Array.from({ length: 200 }, (_, i) => i + 1);
  assert.equal(percentile(values, 99), 198);
});

Deno.test("percentile compares numbers, not their digits", () => {
  assert.equal(percentile([9, 10, 100], 100), 100);
});

Deno.test("percentile of one value is that value", () => {
  assert.equal(percentile([7], 1), 7);
});

Deno.test("percentile refuses no values and a percentage out of bounds", () => {
  assert.throws(() => percentile([], 50), RangeError);
  for (const percent of [0, -1, 100.1, NaN]) {
    assert.throws(() => percentile([1], percent), RangeError);
  }
});
