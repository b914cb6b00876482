import assert from "node:assert/strict";
import { Backoff } from "./backoff.ts";
import type { Random } from "./runtime.ts";

const lowest: Random = (bytes) => bytes.fill(0);
const highest: Random = (bytes) => bytes.fill(255);

Deno.test("the waits double from 250 ms and are capped at 5 s (TOP-4)", () => {
  const backoff = new Backoff(lowest);
  const waits = Array.from({ length: 7 }, () => backoff.next());
  assert.deepEqual(waits, [250, 500, 1000, 2000, 4000, 5000, 5000]);
});

Deno.test("jitter shortens a wait by a fifth at most", () => {
  const backoff = new Backoff(highest);
  for (const base of [250, 500, 1000, 2000, 4000, 5000, 5000]) {
    const wait = backoff.next();
    assert(wait >= base * 0.8 && wait < base, `${wait} for ${base}`);
  }
});

Deno.test("a reset starts over at 250 ms", () => {
  const backoff = new Backoff(lowest);
  backoff.next();
  backoff.next();
  backoff.reset();
  assert.equal(backoff.next(), 250);
});
