import assert from "node:assert/strict";
import process from "node:process";
import { systemClock, systemRandom } from "./system.ts";

Deno.test("the clock never goes back", () => {
  let last = systemClock.now();
  for (let i = 0; i < 1000; i++) {
    const now = systemClock.now();
    assert.ok(now >= last);
    last = now;
  }
});

Deno.test("a timer never fires before its time", async () => {
  for (const ms of [0, 0.4, 1, 1.9, 7]) {
    const start = systemClock.now();
    const end = await new Promise<number>((resolve) => {
      systemClock.setTimer(ms, () => resolve(systemClock.now()));
    });
    assert.ok(end - start >= ms, `${ms} ms took ${end - start}`);
  }
});

Deno.test("timers fire once each, in the order of their times", async () => {
  const fired: number[] = [];
  await new Promise<void>((resolve) => {
    systemClock.setTimer(30, resolve);
    for (const ms of [20, 1, 10]) systemClock.setTimer(ms, () => fired.push(ms));
  });
  assert.deepEqual(fired, [1, 10, 20]);
});

Deno.test("a cancelled timer never fires, and cancelling twice is harmless", async () => {
  const timer = systemClock.setTimer(0, () => assert.fail("the timer fired"));
  timer.cancel();
  timer.cancel();
  await new Promise<void>((resolve) => systemClock.setTimer(5, resolve));
});

Deno.test("a timer beyond 2^31 ms does not fire at once", async () => {
  const timer = systemClock.setTimer(2 ** 31, () => assert.fail("the timer fired"));
  await new Promise<void>((resolve) => systemClock.setTimer(5, resolve));
  timer.cancel();
});

Deno.test("random fills any length and returns the same array", () => {
  for (const length of [0, 1, 16, 65_536, 65_537, 200_000]) {
    const bytes = new Uint8Array(length);
    assert.equal(systemRandom(bytes), bytes);
    // The chance that a part of 64 random bytes is all zeros is 2^-512.
    for (let at = 0; at + 64 <= length; at += 64) {
      assert.ok(bytes.subarray(at, at + 64).some((byte) => byte !== 0), `zeros at ${at}`);
    }
  }
});

Deno.test("a timer that is due already fires at once, without a warning", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on("warning", note);
  try {
    await new Promise<void>((resolve) => systemClock.setTimer(-52, resolve));
    await new Promise<void>((resolve) => systemClock.setTimer(0, resolve));
  } finally {
    process.off("warning", note);
  }
  assert.deepEqual(warnings, []);
});
