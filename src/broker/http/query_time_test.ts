import assert from "node:assert/strict";
import * as v from "valibot";
import { queryTime } from "./query_time.ts";

const CASES: readonly (readonly [string, string | undefined])[] = [
  ["", undefined],
  ["2026-01-31", "2026-01-31T00:00:00.000000Z"],
  ["2026-01-31T12:30Z", "2026-01-31T12:30:00.000000Z"],
  ["2026-01-31T12:30:05", "2026-01-31T12:30:05.000000Z"],
  ["2026-01-31t12:30:05.123456789z", "2026-01-31T12:30:05.123456Z"],
  ["2026-01-31T12:30:05.5+02:00", "2026-01-31T10:30:05.500000Z"],
  ["2026-01-31T12:30:05+0200", "2026-01-31T10:30:05.000000Z"],
  ["2026-01-31T12:30:05 02:00", "2026-01-31T10:30:05.000000Z"],
  ["2026-01-31 12:30:05", "2026-01-31T12:30:05.000000Z"],
  ["2026-01-31T23:30:00-01:00", "2026-02-01T00:30:00.000000Z"],
];

for (const [text, expected] of CASES) {
  Deno.test(`the time ${JSON.stringify(text)} is ${expected}`, () => {
    assert.equal(v.parse(queryTime, text), expected);
  });
}

const NO_TIMES = [
  "now",
  "0",
  "2026",
  "2026-02-30",
  "2026-13-01T00:00:00Z",
  "2026-01-31T25:00:00Z",
  "2026-01-31T12:60:00Z",
  "2026-01-31Z",
  "2026-01-31T12:30:05+99:99",
  "0000-01-01T00:00:00Z",
  "12026-01-31T00:00:00Z",
  "2026-01-31T12:30:05Z\0",
  "infinity",
];

for (const text of NO_TIMES) {
  Deno.test(`${JSON.stringify(text)} is no time`, () => {
    assert.equal(v.safeParse(queryTime, text).success, false);
  });
}
