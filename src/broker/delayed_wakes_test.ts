import assert from "node:assert/strict";
import type { OutgoingMessage } from "../protocol/messages.ts";
import { VirtualClock } from "../simulation/virtual_clock.ts";
import { DelayedWakes, DELAYS_MAX } from "./delayed_wakes.ts";
import { Waker } from "./waker.ts";
import { Wakes } from "./wakes.ts";

const TENANT = "00000000-0000-0000-0000-000000000001";

function bench() {
  const clock = new VirtualClock();
  const frames: OutgoingMessage[] = [];
  const popWait = { initialMs: 1e8, threshold: 0, multiplier: 1, maxMs: 1e8 };
  const waker = new Waker({ clock, popWait });
  const broadcast = (message: OutgoingMessage) => {
    frames.push(message);
  };
  const wakes = new Wakes({ waker, broadcast });
  return { clock, frames, delayed: new DelayedWakes({ clock, wakes }) };
}

function announced(frames: readonly OutgoingMessage[]): unknown[] {
  return frames.flatMap((frame) => "items" in frame ? frame.items : []);
}

Deno.test("a delayed partition is announced when it can be taken from, and once", async () => {
  const { clock, frames, delayed } = bench();
  delayed.announce(TENANT, [
    { queue: "q", partition: "a", delayMs: 100 },
    { queue: "q", partition: "b", delayMs: 50 },
  ]);
  await clock.advance(50);
  assert.deepEqual(announced(frames), [{ queue: "q", partition: "b", tenant: TENANT }]);
  await clock.advance(49);
  assert.equal(frames.length, 1);
  await clock.advance(10_000);
  assert.deepEqual(announced(frames).slice(1), [{ queue: "q", partition: "a", tenant: TENANT }]);
  assert.equal(clock.pending, 0);
});

Deno.test("no more delays are kept than the most", () => {
  const { clock, delayed } = bench();
  for (let i = 0; i <= DELAYS_MAX; i++) {
    delayed.announce(TENANT, [{ queue: "q", partition: "p", delayMs: 1000 }]);
  }
  assert.equal(clock.pending, DELAYS_MAX);
});

Deno.test("closing forgets what has not matured, and what comes after", async () => {
  const { clock, frames, delayed } = bench();
  delayed.announce(TENANT, [{ queue: "q", partition: "p", delayMs: 100 }]);
  delayed.close();
  delayed.announce(TENANT, [{ queue: "q", partition: "p", delayMs: 100 }]);
  assert.equal(clock.pending, 0);
  await clock.advance(1000);
  assert.deepEqual(frames, []);
});
