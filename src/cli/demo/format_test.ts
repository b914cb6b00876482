import assert from "node:assert/strict";
import { formatMs, formatTable } from "./format.ts";

Deno.test("formatMs keeps three figures at most, and rounds before it chooses the unit", () => {
  assert.deepEqual([0, 0.44, 12.34, 99.94, 99.95, 743.2, 999.4, 999.5, 2140].map(formatMs), [
    "0.0 ms",
    "0.4 ms",
    "12.3 ms",
    "99.9 ms",
    "100 ms",
    "743 ms",
    "999 ms",
    "1.0 s",
    "2.1 s",
  ]);
});

Deno.test("formatTable lines the first column up to the left and the others to the right", () => {
  assert.deepEqual(
    formatTable([["", "rounds", "p50"], ["with", "200", "2.1 ms"], ["without it", "20", "88 ms"]]),
    [
      "             rounds      p50",
      "with            200   2.1 ms",
      "without it       20    88 ms",
    ],
  );
});

Deno.test("formatTable of no rows is no lines", () => {
  assert.deepEqual(formatTable([]), []);
});
