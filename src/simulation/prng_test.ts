import assert from "node:assert/strict";
import { Prng } from "./prng.ts";

Deno.test("a seed repeats its numbers and another seed gives others", () => {
  const draw = (seed: number) =>
    Array.from({ length: 4 }, ((prng) => () => prng.uint32())(new Prng(seed)));
  assert.deepEqual(draw(7), draw(7));
  const firsts = Array.from({ length: 1000 }, (_, seed) => draw(seed)[0]);
  assert.equal(new Set(firsts).size, 1000);
  assert.notDeepEqual(draw(1), draw(1 + 2 ** 32));
});

Deno.test("whole numbers reach both of their bounds and never pass them", () => {
  const prng = new Prng(1);
  const counts = new Map<number, number>();
  for (let i = 0; i < 6000; i++) {
    const n = prng.integer(1, 6);
    counts.set(n, (counts.get(n) ?? 0) + 1);
  }
  assert.deepEqual([...counts.keys()].sort(), [1, 2, 3, 4, 5, 6]);
  for (const count of counts.values()) assert.ok(count > 800 && count < 1200, `${count} of 6000`);
});

Deno.test("a chance of 0 never comes and of 1 always, and neither draws a number", () => {
  const prng = new Prng(1);
  const twin = new Prng(1);
  assert.equal(prng.chance(0), false);
  assert.equal(prng.chance(1), true);
  assert.equal(prng.uint32(), twin.uint32());
});

Deno.test("a fork's numbers are its own", () => {
  const prng = new Prng(1);
  const fork = prng.fork();
  const twin = new Prng(1);
  twin.fork();
  for (let i = 0; i < 10; i++) fork.uint32();
  assert.equal(prng.uint32(), twin.uint32());
});

Deno.test("nothing can be picked from an empty list", () => {
  assert.throws(() => new Prng(1).pick([]), RangeError);
});

Deno.test("the random source of a runtime fills all the bytes and returns them", () => {
  const bytes = new Uint8Array(256);
  assert.equal(new Prng(1).random(bytes), bytes);
  assert.ok(new Set(bytes).size > 100);
});
