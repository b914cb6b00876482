import assert from "node:assert/strict";
import { FRAME_TYPE, FrameDecoder } from "../../protocol/frame.ts";
import {
  decodeMessage,
  type DirtyHint,
  FrameWriter,
  type OutgoingDirtyHint,
  type OutgoingMessage,
} from "../../protocol/messages.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { DirtyHints, FLUSH_HINTS_MAX, FLUSH_MS, HINTS_MAX } from "./dirty_hints.ts";

const A = "00000000-0000-0000-0000-000000000001";
const B = "00000000-0000-0000-0000-00000000000b";

function bench() {
  const clock = new VirtualClock();
  const messages: OutgoingMessage[] = [];
  const hints = new DirtyHints({ clock, broadcast: (message) => messages.push(message) });
  return { clock, messages, hints };
}

/** What a peer hears of `messages`, over a stream of frames. */
function heard(messages: readonly OutgoingMessage[]) {
  const decoder = new FrameDecoder();
  const writer = new FrameWriter();
  const items: DirtyHint[] = [];
  const lengths: number[] = [];
  for (const message of messages) {
    writer.encode(message, (bytes) => {
      lengths.push(bytes.length);
      decoder.push(bytes);
      for (let frame = decoder.next(); frame !== undefined; frame = decoder.next()) {
        assert.equal(frame.type, FRAME_TYPE.HOTLIST_DIRTY_BATCH);
        const message = decodeMessage(frame);
        assert(message?.type === "hotlist_dirty");
        items.push(...message.items);
      }
    });
  }
  return { items, lengths };
}

Deno.test("a thousand pushes to one partition within a window put one hint on the wire", async () => {
  const { clock, messages, hints } = bench();
  for (let i = 0; i < 1000; i++) {
    hints.add(A, [{ queue: "q", partition: "p" }]);
    if (i % 100 === 0) await clock.advance(1);
  }
  assert.deepEqual(messages, []);
  await clock.advance(1000);
  const { items, lengths } = heard(messages);
  assert.deepEqual(items, [{ queue: "q", partition: "p", tenant: A, group: undefined }]);
  assert.equal(lengths.length, 1);
  assert.equal(clock.pending, 0);
});

Deno.test("hints leave when the window is over, and the next ones open another", async () => {
  const { clock, messages, hints } = bench();
  hints.add(A, [{ queue: "q", partition: "p" }]);
  await clock.advance(FLUSH_MS - 1);
  assert.equal(messages.length, 0);
  await clock.advance(1);
  assert.equal(messages.length, 1);
  hints.add(A, [{ queue: "q", partition: "p" }]);
  await clock.advance(FLUSH_MS - 1);
  assert.equal(messages.length, 1);
  await clock.advance(1);
  assert.equal(messages.length, 2);
  assert.equal(hints.size, 0);
});

Deno.test("hints of different tenants, queues, partitions and groups stay apart", async () => {
  const { clock, messages, hints } = bench();
  hints.add(A, [{ queue: "q", partition: "p" }, { queue: "q", partition: "p2" }]);
  hints.add(A, [{ queue: "q2", partition: "p" }]);
  hints.add(B, [{ queue: "q", partition: "p" }]);
  hints.add(A, [{ queue: "q", partition: "p3" }], { group: "g" });
  hints.add(A, [{ queue: "q", partition: "p3" }], { group: "h" });
  hints.add(A, [{ queue: "q", partition: "p3" }], { group: "h" });
  await clock.advance(FLUSH_MS);
  assert.deepEqual(
    heard(messages).items.map(({ tenant, queue, partition, group }) =>
      [
        tenant === A ? "A" : "B",
        queue,
        partition,
        group ?? "every",
      ].join(" ")
    ).sort(),
    ["A q p every", "A q p2 every", "A q p3 g", "A q p3 h", "A q2 p every", "B q p every"],
  );
});

Deno.test("a hint for every group makes one for a single group needless", async () => {
  const { clock, messages, hints } = bench();
  hints.add(A, [{ queue: "q", partition: "p" }]);
  hints.add(A, [{ queue: "q", partition: "p" }], { group: "g" });
  await clock.advance(FLUSH_MS);
  assert.deepEqual(heard(messages).items, [
    { queue: "q", partition: "p", tenant: A, group: undefined },
  ]);
});

Deno.test("where nobody knows the partition there is no hint", () => {
  const { clock, hints } = bench();
  hints.add(A, [{ queue: "q", partition: "" }]);
  assert.equal(hints.size, 0);
  assert.equal(clock.pending, 0);
});

Deno.test("50000 partitions with long names leave as frames that no peer refuses", async () => {
  const { clock, messages, hints } = bench();
  // Quotes and other scripts take more bytes on the wire than they have characters.
  const name = (i: number) => `${String(i).padStart(6, "0")}${'é"漢'.repeat(98)}`;
  const partitions = Array.from({ length: 50_000 }, (_, i) => name(i));
  assert.equal(partitions[0]!.length, 300);
  hints.add(A, partitions.map((partition) => ({ queue: "q", partition })));
  await clock.advance(1000);
  const { items, lengths } = heard(messages);
  assert.deepEqual(items.map(({ partition }) => partition), partitions);
  assert(lengths.length > 1 && Math.max(...lengths) <= 1_048_576);
});

Deno.test("many hints leave a part in each turn, and those in between still coalesce", async () => {
  const { clock, messages, hints } = bench();
  const partitions = Array.from({ length: 2 * FLUSH_HINTS_MAX + 1 }, (_, i) => ({
    queue: `q${i % 3}`,
    partition: `p${i}`,
  }));
  hints.add(A, partitions);
  await clock.runUntil(FLUSH_MS, () => messages.length === 1);
  assert.equal(hints.size, FLUSH_HINTS_MAX + 1);
  // The last ones have not left yet.
  hints.add(A, partitions.filter(({ queue }) => queue === "q2").slice(-3));
  await clock.advance(FLUSH_MS);
  const counts = messages.map((message) => "items" in message ? message.items.length : 0);
  assert.deepEqual(counts, [FLUSH_HINTS_MAX, FLUSH_HINTS_MAX, 1]);
  const items = messages.flatMap((message) => "items" in message ? message.items : []);
  const names = new Set(items.map(({ partition }: OutgoingDirtyHint) => partition));
  assert.equal(names.size, partitions.length);
  assert.equal(hints.size, 0);
});

Deno.test("beyond the most, hints are dropped and counted, those that are there are not", async () => {
  const { clock, messages, hints } = bench();
  const partitions = Array.from({ length: HINTS_MAX + 7 }, (_, i) => ({
    queue: "q",
    partition: `p${i}`,
  }));
  hints.add(A, partitions);
  assert.equal(hints.size, HINTS_MAX);
  assert.equal(hints.dropped, 7);
  hints.add(A, partitions.slice(0, 10));
  assert.equal(hints.dropped, 7);
  hints.add(A, [{ queue: "another", partition: "p" }]);
  assert.equal(hints.dropped, 8);
  await clock.advance(FLUSH_MS);
  const items = messages.flatMap((message) => "items" in message ? message.items : []);
  assert.equal(items.length, HINTS_MAX);
  hints.add(A, [{ queue: "another", partition: "p" }]);
  assert.equal(hints.size, 1);
  hints.close();
});

Deno.test("closing forgets what has not left, and what comes after", async () => {
  const { clock, messages, hints } = bench();
  hints.add(A, [{ queue: "q", partition: "p" }]);
  hints.close();
  hints.add(A, [{ queue: "q", partition: "p" }]);
  assert.equal(clock.pending, 0);
  await clock.advance(1000);
  assert.deepEqual(messages, []);
});
