import assert from "node:assert/strict";
import fc from "fast-check";
import type { Popped } from "../pop_service.ts";
import type { PoppedBatch } from "../store/store.ts";
import { boundPop, popReplyText } from "./pop_reply.ts";

const UUID = "00000000-0000-4000-8000-000000000000";

function batchOf(name: string, payloads: readonly string[]): PoppedBatch {
  return {
    partition: name,
    partitionId: UUID,
    leaseId: UUID,
    messages: payloads.map((payload) => ({
      id: UUID,
      transactionId: name,
      payload,
      createdAt: "2026-01-01T00:00:00.000000Z",
    })),
  };
}

function poppedOf(name: string, [first, ...others]: readonly PoppedBatch[]): Popped {
  return { queue: name, consumerGroup: name, ...first!, others };
}

Deno.test("a reply holds the payloads as they are and escapes everything else", () => {
  const payload = '{"a" : 1.0}';
  const text = popReplyText(poppedOf('q"', [batchOf('p"\\', [payload, payload])]));
  const reply = JSON.parse(text);
  assert.equal(reply.queue, 'q"');
  assert.equal(reply.messages[1].transactionId, 'p"\\');
  assert.equal(text.split(`"data":${payload},`).length, 3);
});

Deno.test("a bounded pop of several messages never gives a reply above the bound", () => {
  const encoder = new TextEncoder();
  fc.assert(fc.property(
    fc.integer({ min: 1, max: 10_000 }),
    fc.integer({ min: 1, max: 200_000 }),
    fc.constantFrom("p", '"'.repeat(512), "ü".repeat(256)),
    fc.integer({ min: 1, max: 5000 }),
    fc.boolean(),
    (batch, replyBytesMax, name, payloadBytes, isSpread) => {
      const bounds = boundPop(batch, replyBytesMax, { group: name });
      assert(bounds.batch >= 1 && bounds.batch <= batch);
      const count = Math.max(
        Math.min(bounds.batch, Math.floor(bounds.bytesMax / payloadBytes)),
        1,
      );
      const payloads = new Array<string>(count).fill("1".repeat(payloadBytes));
      const each = isSpread ? payloads.map((payload) => [payload]) : [payloads];
      const reply = popReplyText(poppedOf(name, each.map((list) => batchOf(name, list))));
      const bytes = encoder.encode(reply).length;
      assert(count === 1 || bytes <= replyBytesMax, `${count} messages make ${bytes} bytes`);
    },
  ));
});

Deno.test("the default bound leaves every batch its size", () => {
  assert.equal(boundPop(10_000, 64 * 1024 * 1024, { group: "x".repeat(512) }).batch, 10_000);
});

Deno.test("each message of several partitions says where it comes from, and the reply names the first", () => {
  const other = "00000000-0000-4000-8000-00000000000b";
  const batches = [
    batchOf("a", ["1", "2"]),
    { ...batchOf("b", ["3"]), partitionId: other, leaseId: other },
  ];
  const reply = JSON.parse(popReplyText({ ...poppedOf("q", batches), consumerGroup: "g" }));
  assert.equal(reply.partitionsClaimed, 2);
  const { messages, success: _, partitionsClaimed: __, queue, ...place } = reply;
  assert.equal(queue, "q");
  assert.deepEqual(place, { partitionId: UUID, partition: "a", leaseId: UUID, consumerGroup: "g" });
  assert.deepEqual(
    messages.map((
      { data, partitionId, partition, leaseId, consumerGroup }: Record<string, unknown>,
    ) => [data, partitionId, partition, leaseId, consumerGroup]),
    [
      [1, UUID, "a", UUID, "g"],
      [2, UUID, "a", UUID, "g"],
      [3, other, "b", other, "g"],
    ],
  );
});
