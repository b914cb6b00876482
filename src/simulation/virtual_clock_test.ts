import assert from "node:assert/strict";
import { settle, VirtualClock } from "./virtual_clock.ts";

Deno.test("timers fire in the order of their times, then in the order in which they were set", async () => {
  const clock = new VirtualClock();
  const fired: string[] = [];
  const set = (ms: number, name: string) =>
    clock.setTimer(ms, () => fired.push(`${name}@${clock.now()}`));
  set(20, "c");
  set(10, "a");
  set(20, "d");
  set(10, "b");
  set(30, "e");
  await clock.advance(20);
  assert.deepEqual(fired, ["a@10", "b@10", "c@20", "d@20"]);
  assert.equal(clock.now(), 20);
  assert.equal(clock.pending, 1);
  assert.equal(clock.next, 30);
});

Deno.test("a cancelled timer does not fire, and cancelling after it fired is harmless", async () => {
  const clock = new VirtualClock();
  const fired: number[] = [];
  const timers = [0, 1, 2].map((n) => clock.setTimer(5, () => fired.push(n)));
  timers[1]!.cancel();
  timers[1]!.cancel();
  await clock.advance(5);
  for (const timer of timers) timer.cancel();
  assert.deepEqual(fired, [0, 2]);
  assert.equal(clock.pending, 0);
});

Deno.test("code that a timer wakes comes to rest before the next timer fires", async () => {
  const clock = new VirtualClock();
  const seen: string[] = [];
  clock.setTimer(1, async () => {
    for (let turn = 0; turn < 1000; turn++) await null;
    seen.push("first");
  });
  clock.setTimer(1, () => seen.push("second"));
  await clock.advance(1);
  assert.deepEqual(seen, ["first", "second"]);
});

Deno.test("a timer that is set on the way fires in the same run, at its own time", async () => {
  const clock = new VirtualClock();
  const seen: number[] = [];
  const again = () => {
    seen.push(clock.now());
    clock.setTimer(250, again);
  };
  again();
  await clock.runUntil(800);
  assert.deepEqual(seen, [0, 250, 500, 750]);
});

Deno.test("an error that a timer throws is passed on", async () => {
  const clock = new VirtualClock();
  clock.setTimer(1, () => {
    throw new Error("from a timer");
  });
  await assert.rejects(clock.advance(1), /from a timer/);
});

Deno.test("timers that never let time move are reported", async () => {
  const clock = new VirtualClock();
  const again = () => void clock.setTimer(0, again);
  again();
  await assert.rejects(clock.advance(1), /without time moving on/);
});

Deno.test("a timer needs a finite time", () => {
  assert.throws(() => new VirtualClock().setTimer(NaN, () => {}), RangeError);
});

Deno.test("settling drains promise chains to their end", async () => {
  let steps = 0;
  const chain = async () => {
    for (; steps < 5000; steps++) await Promise.resolve();
  };
  void chain();
  await settle();
  assert.equal(steps, 5000);
});
