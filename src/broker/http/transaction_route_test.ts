import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import { HttpBench, type Reply } from "../testing/http_bench.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** A bench on which a message "in" of the queue "in" is leased. */
async function leased() {
  const bench = await HttpBench.started();
  const items = [{ queue: "in", payload: 1, transactionId: "in" }];
  await bench.call("/api/v1/push", { body: { items } });
  const { partitionId, leaseId } = (await bench.call("/api/v1/pop/queue/in")).body;
  bench.frames.length = 0;
  return { bench, ack: { type: "ack", transactionId: "in", partitionId, leaseId } };
}

const out = (...ids: string[]) => ({
  type: "push",
  items: ids.map((transactionId) => ({ queue: "out", payload: 1, transactionId })),
});

function run(bench: HttpBench, operations: unknown, rest: object = {}): Promise<Reply> {
  return bench.call("/api/v1/transaction", { body: { operations, ...rest } });
}

Deno.test("a transaction answers with one result for each message and each ack", async () => {
  const { bench, ack } = await leased();
  const unnamed = { type: "push", items: [{ queue: "out", partition: "p", payload: {} }] };
  const { status, body } = await run(bench, [out("a", "b"), ack, unnamed], {
    requiredLeases: [ack.leaseId],
  });
  assert.equal(status, 200);
  assert.match(body.transactionId, UUID);
  const ids = body.results.map((result: { messageId?: string }) => result.messageId);
  const pushed = { type: "push", success: true, queueName: "out", status: "queued", error: null };
  assert.deepEqual(body, {
    transactionId: body.transactionId,
    success: true,
    results: [
      { index: 0, ...pushed, transactionId: "a", messageId: ids[0] },
      { index: 1, ...pushed, transactionId: "b", messageId: ids[1] },
      {
        index: 2,
        type: "ack",
        success: true,
        transactionId: "in",
        error: null,
        leaseReleased: true,
        dlq: false,
        noop: false,
      },
      { index: 3, ...pushed, transactionId: ids[3], messageId: ids[3] },
    ],
  });
  for (const id of [ids[0], ids[1], ids[3]]) assert.match(id, UUID);
});

Deno.test("a transaction that is rolled back is answered with 200 and says why", async () => {
  const { bench, ack } = await leased();
  const wrong = { ...ack, leaseId: "wrong" };
  const { status, body } = await run(bench, [out("a"), ack, wrong]);
  assert.equal(status, 200);
  assert.equal(body.success, false);
  assert.equal(body.error, "invalid or expired lease");
  assert.deepEqual(
    body.results.map(({ success, error }: { success: boolean; error: string }) => [success, error]),
    [
      [false, "rolled back"],
      [false, "rolled back"],
      [false, "invalid or expired lease"],
    ],
  );
  assert.equal(body.results[0].status, "failed");
  assert.equal(body.results[1].leaseReleased, false);
  assert.deepEqual(bench.frames, []);
  assert.equal((await bench.call("/api/v1/pop/queue/out")).status, 204);
});

Deno.test("a transaction wakes who waits for what it pushed, and says it in a frame", async () => {
  const { bench, ack } = await leased();
  const waiting = bench.call("/api/v1/pop/queue/out?wait=true");
  await settle();
  await run(bench, [ack, out("a")]);
  assert.equal((await waiting).body.messages[0].transactionId, "a");
  assert.deepEqual(bench.frames.map(({ type }) => type), ["message_available"]);
});

Deno.test("a transaction keeps a payload's own text", async () => {
  const { bench } = await leased();
  const payload = String.raw`{"b":1.0,"a":"\u0000\ud800","a":12345678901234567890}`;
  const body = `{"operations":[{"type":"push","items":[{"queue":"out","payload": ${payload} }]}]}`;
  assert.equal((await bench.call("/api/v1/transaction", { body })).body.success, true);
  const { text } = await bench.call("/api/v1/pop/queue/out");
  assert.ok(text.includes(`"data":${payload},`), text);
});

Deno.test("an ack in a transaction can be of any group and status", async () => {
  const { bench, ack } = await leased();
  let acks: unknown;
  bench.store.transaction = (_tenant, request) => {
    acks = request.acks;
    return Promise.resolve({ isCommitted: false, pushed: undefined, acked: undefined });
  };
  const { partitionId } = ack;
  const other = { type: "ack", transactionId: "t", partitionId, consumerGroup: "g" };
  await run(bench, [{ ...other, status: "ok" }, { ...other, status: "no", error: "why" }]);
  const expected = { transactionId: "t", partitionId, consumerGroup: "g" };
  assert.deepEqual(acks, [
    { ...expected, status: "completed" },
    { ...expected, status: "failed", error: "why" },
  ]);
});

Deno.test("a transaction of nothing succeeds, and one that lacks a lease does not", async () => {
  const { bench, ack } = await leased();
  const nothing = await run(bench, []);
  assert.deepEqual([nothing.body.success, nothing.body.results], [true, []]);
  const { leaseId } = ack;
  assert.equal((await run(bench, [], { requiredLeases: [leaseId] })).body.success, true);
  assert.equal((await run(bench, [], { requiredLeases: [leaseId, "x"] })).body.success, false);
  assert.equal((await run(bench, [], { requiredLeases: null })).body.success, true);
});

Deno.test("under maintenance a transaction that pushes is refused, and acks alone go through", async () => {
  const { bench, ack } = await leased();
  await bench.store.writeFlag("maintenance", true);
  await bench.upkeep.flags.refresh();
  const { status, body } = await run(bench, [ack, out("a")]);
  assert.deepEqual([status, body.success], [200, false]);
  assert.match(body.error, /under maintenance/);
  assert.equal(body.results.length, 2);
  assert.equal((await run(bench, [ack])).body.success, true);
  assert.equal((await bench.call("/api/v1/pop/queue/out")).status, 204);
});

Deno.test("with PostgreSQL away a transaction is answered with 503", async () => {
  const { bench, ack } = await leased();
  bench.store.isAway = true;
  assert.equal((await run(bench, [ack])).status, 503);
  assert.equal((await run(bench, [out("a")])).status, 503);
});
