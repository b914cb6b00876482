import assert from "node:assert/strict";
import fc from "fast-check";
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

Deno.test("a reply holds the payloads as they are and escapes everything else", () => {
  const payload = '{"a" : 1.0}';
  const text = popReplyText('q"', batchOf('p"\\', [payload, payload]));
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
    (batch, replyBytesMax, name, payloadBytes) => {
      const bounds = boundPop(batch, replyBytesMax);
      assert(bounds.batch >= 1 && bounds.batch <= batch);
      const count = Math.max(
        Math.min(bounds.batch, Math.floor(bounds.bytesMax / payloadBytes)),
        1,
      );
      const payloads = new Array<string>(count).fill("1".repeat(payloadBytes));
      const bytes = encoder.encode(popReplyText(name, batchOf(name, payloads))).length;
      assert(count === 1 || bytes <= replyBytesMax, `${count} messages make ${bytes} bytes`);
    },
  ));
});

Deno.test("the default bound leaves every batch its size", () => {
  assert.equal(boundPop(10_000, 64 * 1024 * 1024).batch, 10_000);
});
