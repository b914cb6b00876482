import assert from "node:assert/strict";
import { useTestStores } from "../testing/test_store.ts";
import { Api } from "./testing/api.ts";

const open = useTestStores();

async function pop(api: Api, queue: string, query = "") {
  const { status, body } = await api.call(`/api/v1/pop/queue/${queue}${query}`);
  return status === 200 ? body : undefined;
}

async function push(api: Api, queue: string, ...ids: string[]): Promise<void> {
  const items = ids.map((transactionId) => ({ queue, payload: { transactionId }, transactionId }));
  const { status } = await api.call("/api/v1/push", { items });
  assert.equal(status, 201);
}

interface Named {
  readonly transactionId: string;
}

const idsOf = (body: { messages: Named[] }) => body.messages.map((m) => m.transactionId);

Deno.test("[1 completed, 2 failed, 3 completed] brings 2 and 3 again, to each group by itself", async () => {
  await using api = await Api.start(await open());
  await api.call("/api/v1/configure", { queue: "q", options: { retryDelay: 0 } });
  await push(api, "q", "1", "2", "3");
  for (const group of ["", "g"]) {
    const query = `?subscriptionMode=all&consumerGroup=${group}`;
    const { partitionId, leaseId } = await pop(api, "q", query);
    const statuses = { "1": "completed", "2": "failed", "3": "completed" };
    const { body } = await api.call("/api/v1/ack/batch", {
      consumerGroup: group,
      acknowledgments: Object.entries(statuses).map(([transactionId, status]) => ({
        transactionId,
        partitionId,
        leaseId,
        status,
      })),
    });
    assert.deepEqual(body.map(({ success }: { success: boolean }) => success), [true, true, true]);
    assert.deepEqual(idsOf(await pop(api, "q", query)), ["2", "3"]);
  }
});

Deno.test("a transaction moves a message from one queue to the next, or nothing", async () => {
  await using api = await Api.start(await open());
  await push(api, "in", "1", "2");
  const { partitionId, leaseId } = await pop(api, "in", "?batch=1");
  const ack = { type: "ack", transactionId: "1", partitionId, leaseId };
  const move = {
    operations: [ack, {
      type: "push",
      items: [{ queue: "out", payload: [1], transactionId: "o" }],
    }],
    requiredLeases: [leaseId],
  };
  const done = await api.call("/api/v1/transaction", move);
  assert.deepEqual([done.status, done.body.success, done.body.error], [200, true, undefined]);
  assert.deepEqual((await pop(api, "out")).messages[0].data, [1]);
  const again = await api.call("/api/v1/transaction", move);
  assert.deepEqual([again.status, again.body.success], [200, false]);
  assert.match(again.body.error, /lease/);
  assert.equal(await pop(api, "out"), undefined);
  assert.deepEqual(idsOf(await pop(api, "in")), ["2"]);
});

Deno.test("a transaction wakes a pop that waits for what it pushed", async () => {
  await using api = await Api.start(await open());
  const waiting = pop(api, "out", "?wait=true");
  await api.untilParked(1);
  const items = [{ queue: "out", payload: 1, transactionId: "o" }];
  await api.call("/api/v1/transaction", { operations: [{ type: "push", items }] });
  assert.deepEqual(idsOf(await waiting), ["o"]);
});

Deno.test("a message over its retryLimit is found among the dead letters, or given up", async () => {
  await using api = await Api.start(await open());
  for (const dlqAfterMaxRetries of [true, false]) {
    const queue = `q-${dlqAfterMaxRetries}`;
    const options = { retryLimit: 1, retryDelay: 0, dlqAfterMaxRetries };
    await api.call("/api/v1/configure", { queue, options });
    await push(api, queue, "t", "next");
    for (let tries = 0; tries < 2; tries++) {
      const { partitionId, leaseId } = await pop(api, queue, "?batch=1");
      const ack = { transactionId: "t", partitionId, leaseId, status: "failed", error: "no good" };
      const { body } = await api.call("/api/v1/ack", ack);
      const dlq = dlqAfterMaxRetries && tries === 1;
      assert.deepEqual([body[0].success, body[0].dlq], [true, dlq]);
    }
    assert.deepEqual(idsOf(await pop(api, queue)), ["next"]);
    const { body } = await api.call(`/api/v1/dlq?queue=${queue}`);
    assert.equal(body.total, dlqAfterMaxRetries ? 1 : 0);
    if (!dlqAfterMaxRetries) continue;
    const [letter] = body.messages;
    assert.deepEqual(
      [letter.transactionId, letter.data, letter.errorMessage, letter.retryCount, letter.queue],
      ["t", { transactionId: "t" }, "no good", 1, queue],
    );
    const after = await api.call(`/api/v1/dlq?queue=${queue}&from=${letter.failedAt}`);
    assert.equal(after.body.total, 1);
    const before = await api.call(`/api/v1/dlq?queue=${queue}&to=2020-01-01`);
    assert.deepEqual(before.body, { messages: [], total: 0 });
  }
});

Deno.test("a queue that is deleted is gone with its leases, and its name starts anew", async () => {
  await using api = await Api.start(await open());
  await api.call("/api/v1/configure", { queue: "q", options: { leaseTime: 7 } });
  await push(api, "q", "1");
  const { partitionId, leaseId } = await pop(api, "q");
  const path = "/api/v1/resources/queues/q";
  const { body } = await api.ask({ method: "DELETE", path });
  assert.deepEqual(body, { deleted: true, queue: "q", existed: true });
  const late = await api.call("/api/v1/ack", { transactionId: "1", partitionId, leaseId });
  assert.deepEqual([late.body[0].success, late.body[0].error], [false, "invalid or expired lease"]);
  assert.equal((await api.call("/api/v1/dlq?queue=q")).status, 404);
  const waiting = pop(api, "q", "?wait=true");
  await api.untilParked(1);
  await push(api, "q", "1");
  assert.deepEqual(idsOf(await waiting), ["1"]);
  const settings = await api.call("/api/v1/configure", { queue: "q" });
  assert.equal(settings.body.options.leaseTime, 60);
});
