import assert from "node:assert/strict";
import { Segment } from "./segment.ts";

function record(position: number) {
  return { position, acceptedAt: 1000 * position };
}

Deno.test("a segment counts what is appended to it and what is drained", () => {
  const segment = new Segment({ number: 1, path: "/s" });
  assert.ok(segment.isDrained);
  for (const position of [1, 2, 3]) segment.count(record(position));
  segment.grow(200);
  assert.deepEqual([segment.pendingCount, segment.pendingBytes, segment.oldestAt], [3, 200, 1000]);
  segment.pass(60, record(1));
  segment.pass(120, record(2));
  assert.deepEqual([segment.pendingCount, segment.pendingBytes, segment.oldestAt], [1, 80, 2000]);
  segment.pass(200, record(3));
  assert.deepEqual([segment.pendingCount, segment.pendingBytes], [0, 0]);
  assert.equal(segment.oldestAt, undefined);
});

Deno.test("a record that was lost is not pending once its place is passed", () => {
  const segment = new Segment({ number: 1, path: "/s" });
  for (const position of [1, 2]) segment.count(record(position));
  segment.grow(200);
  segment.pass(100);
  segment.pass(200, record(2));
  assert.equal(segment.pendingCount, 0);
  segment.count(record(3));
  segment.grow(100);
  assert.equal(segment.pendingCount, 1);
});

Deno.test("a segment that is rewound begins again", () => {
  const segment = new Segment({ number: 1, path: "/s", bytes: 100, isEnded: true });
  segment.count(record(1));
  segment.pass(100, record(1));
  segment.rewind();
  assert.deepEqual([segment.pendingCount, segment.drainedBytes], [1, 0]);
});
