import assert from "node:assert/strict";
import fc from "fast-check";
import { SendQueue } from "./send_queue.ts";

function bytes(...values: number[]): Uint8Array {
  return Uint8Array.from(values);
}

Deno.test("a queue gives all that waits as one run of bytes, in order", () => {
  const queue = new SendQueue();
  queue.push(bytes(1, 2));
  queue.push(bytes(3));
  assert.deepEqual(queue.next(), bytes(1, 2, 3));
  assert.equal(queue.frames, 2);
  assert.equal(queue.taken(3), 2);
  assert.equal(queue.frames, 0);
  assert.equal(queue.next(), undefined);
});

Deno.test("a frame counts as queued until its last byte is taken", () => {
  const queue = new SendQueue();
  queue.push(bytes(1, 2, 3, 4));
  queue.push(bytes(5, 6));
  assert.equal(queue.next()?.length, 6);
  assert.equal(queue.taken(3), 0);
  assert.equal(queue.frames, 2);
  assert.equal(queue.taken(2), 1);
  assert.equal(queue.frames, 1);
  assert.deepEqual(queue.next(), bytes(6));
  assert.equal(queue.taken(1), 1);
});

Deno.test("what is pushed during a write waits for the next run", () => {
  const queue = new SendQueue();
  queue.push(bytes(1, 2));
  const run = queue.next();
  queue.push(bytes(3));
  assert.deepEqual(run, bytes(1, 2));
  queue.taken(1);
  assert.deepEqual(queue.next(), bytes(2));
  queue.taken(1);
  assert.deepEqual(queue.next(), bytes(3));
});

Deno.test("a queue refuses the frame after its last place and keeps the others", () => {
  const queue = new SendQueue({ framesMax: 2 });
  assert.equal(queue.push(bytes(1)), true);
  assert.equal(queue.full, false);
  assert.equal(queue.push(bytes(2)), true);
  assert.equal(queue.full, true);
  assert.equal(queue.push(bytes(3)), false);
  assert.deepEqual(queue.next(), bytes(1, 2));
});

Deno.test("a queue holds 1024 frames and 32 MiB, whichever is reached first", () => {
  const short = new SendQueue();
  for (let pushed = 0; pushed < 1024; pushed++) assert.equal(short.push(bytes(0)), true);
  assert.equal(short.push(bytes(0)), false);
  const long = new SendQueue();
  const frame = new Uint8Array(16 * 1_048_576);
  assert.equal(long.push(frame), true);
  assert.equal(long.push(frame), true);
  assert.equal(long.push(bytes(0)), false);
  assert.equal(long.bytes, 33_554_432);
});

Deno.test("clearing drops every frame, the one that left in part included", () => {
  const queue = new SendQueue();
  queue.push(bytes(1, 2));
  queue.push(bytes(3, 4));
  queue.next();
  queue.taken(3);
  queue.push(bytes(5));
  assert.equal(queue.clear(), 2);
  assert.equal(queue.next(), undefined);
  assert.equal(queue.bytes, 0);
  queue.push(bytes(6));
  assert.deepEqual(queue.next(), bytes(6));
});

Deno.test("a run that is being written is not changed by clearing and pushing", () => {
  const queue = new SendQueue();
  queue.push(bytes(1, 2, 3));
  const run = queue.next();
  queue.clear();
  for (let turn = 0; turn < 3; turn++) {
    queue.push(bytes(9, 9, 9));
    queue.next();
    queue.taken(3);
  }
  assert.deepEqual(run, bytes(1, 2, 3));
});

Deno.test("whatever is pushed comes out once, in order, however it is taken", () => {
  const step = fc.oneof(
    fc.record({ push: fc.uint8Array({ minLength: 1, maxLength: 9000 }) }),
    fc.record({ take: fc.nat(20_000) }),
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const queue = new SendQueue({ framesMax: 16, bytesMax: 40_000 });
    const pushed: number[] = [];
    const out: number[] = [];
    let accepted = 0;
    let completed = 0;
    const take = (most: number) => {
      const run = queue.next();
      if (run === undefined) return false;
      const count = Math.min(most, run.length);
      out.push(...run.subarray(0, count));
      completed += queue.taken(count);
      return true;
    };
    for (const current of steps) {
      if ("take" in current) take(current.take);
      else if (queue.push(current.push)) {
        accepted++;
        pushed.push(...current.push);
      }
      assert(queue.frames <= 16 && queue.bytes <= 40_000);
      assert.equal(queue.frames, accepted - completed);
      assert.equal(queue.bytes, pushed.length - out.length);
    }
    while (take(Infinity));
    assert.deepEqual(out, pushed);
    assert.equal(completed, accepted);
  }));
});
