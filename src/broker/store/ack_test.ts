import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { Ack, AckOutcome, AckResult, PoppedBatch } from "./store.ts";

const open = useTestStores();

const DONE: AckOutcome = { success: true, leaseReleased: false, dlq: false, noop: false };
const RELEASED: AckOutcome = { ...DONE, leaseReleased: true };
const NOOP: AckOutcome = { ...DONE, noop: true };

const DEFAULT = { queue: "orders", partition: "Default", consumerGroup: "__QUEUE_MODE__" };

function failure(error: string): AckOutcome {
  return { ...DONE, success: false, error };
}

const INVALID = failure("invalid or expired lease");
const NOT_THERE = failure("no such message in the leased batch");
const DONE_BEFORE = failure("the message was completed before");

/** Pushes messages with these transactionIds to a queue without a retryDelay and pops them. */
async function lease(
  fixture: TestStore,
  ids: readonly string[],
  options: Record<string, unknown> = {},
): Promise<PoppedBatch> {
  const { store } = fixture;
  await store.configure(TENANT, { queue: "orders", options: { retryDelay: 0, ...options } });
  await store.push(TENANT, ids.map((id) => testItem(id)));
  return await take(fixture);
}

async function take({ store }: TestStore): Promise<PoppedBatch> {
  const { batch } = await store.pop(TENANT, { queue: "orders", batch: 100, autoAck: false });
  assert.ok(batch, "nothing to take");
  return batch;
}

async function isEmpty({ store }: TestStore): Promise<boolean> {
  const { batch } = await store.pop(TENANT, { queue: "orders", batch: 100, autoAck: false });
  return batch === undefined;
}

function idsOf({ messages }: PoppedBatch): string[] {
  return messages.map(({ transactionId }) => transactionId);
}

/** Acknowledges under the batch's lease: `{ "1": "completed" }`. */
function ack(
  { store }: TestStore,
  batch: PoppedBatch,
  statuses: Record<string, Ack["status"]>,
): Promise<AckResult> {
  const { partitionId, leaseId } = batch;
  return store.ack(
    TENANT,
    Object.entries(statuses).map(([transactionId, status]) => ({
      transactionId,
      partitionId,
      leaseId: leaseId!,
      status,
      error: `${status} ${transactionId}`,
    })),
  );
}

async function deadLetters({ sql, schema }: TestStore): Promise<unknown[]> {
  const rows = await sql.unsafe(
    `select transaction_id, error, retry_count, payload from ${schema}.dead_letter order by number`,
  );
  return rows.map((row) => Object.values(row));
}

Deno.test("a batch is completed message by message, and its lease ends with the last", async () => {
  await using fixture = await open();
  const batch = await lease(fixture, ["1", "2"]);
  assert.deepEqual(await ack(fixture, batch, { "1": "completed" }), {
    outcomes: [DONE],
    available: [],
    delayed: [],
  });
  assert.deepEqual((await ack(fixture, batch, { "2": "completed" })).outcomes, [RELEASED]);
  assert.ok(await isEmpty(fixture));
  const late = await ack(fixture, batch, { "2": "completed" });
  assert.deepEqual(late.outcomes, [INVALID]);
  assert.deepEqual(await fixture.store.ack(TENANT, []), {
    outcomes: [],
    available: [],
    delayed: [],
  });
});

Deno.test("what was pushed meanwhile becomes available with the batch's last message", async () => {
  await using fixture = await open();
  const batch = await lease(fixture, ["1", "2"]);
  await fixture.store.push(TENANT, [testItem("3")]);
  const first = await ack(fixture, batch, { "1": "completed" });
  assert.deepEqual(first.available, []);
  const second = await ack(fixture, batch, { "2": "completed" });
  assert.deepEqual(second.available, [DEFAULT]);
  assert.deepEqual(idsOf(await take(fixture)), ["3"]);
});

Deno.test("the cursor stops before the lowest message that was given back", async () => {
  await using fixture = await open();
  const batch = await lease(fixture, ["1", "2", "3"]);
  const result = await ack(fixture, batch, { "1": "completed", "2": "failed", "3": "completed" });
  assert.deepEqual(result.outcomes, [RELEASED, RELEASED, RELEASED]);
  assert.deepEqual(result.available, [DEFAULT]);
  assert.deepEqual(idsOf(await take(fixture)), ["2", "3"]);
});

Deno.test("silent gaps below a completion are completed, those below a retry are not", async () => {
  await using fixture = await open();
  const batch = await lease(fixture, ["1", "2", "3", "4", "5"]);
  await ack(fixture, batch, { "2": "completed", "4": "retry" });
  const again = await take(fixture);
  assert.deepEqual(idsOf(again), ["3", "4", "5"]);
  const { outcomes } = await ack(fixture, again, { "5": "completed" });
  assert.deepEqual(outcomes, [RELEASED]);
  assert.ok(await isEmpty(fixture));
});

Deno.test("an ack of one call counts whatever its place in the call", async () => {
  await using fixture = await open();
  const { partitionId } = await lease(fixture, ["a", "b", "c"]);
  const acks = ["c", "a", "b"].map((transactionId): Ack => ({
    transactionId,
    partitionId,
    status: transactionId === "b" ? "retry" : "completed",
  }));
  const { outcomes } = await fixture.store.ack(TENANT, acks);
  assert.deepEqual(outcomes, [RELEASED, RELEASED, RELEASED]);
  assert.deepEqual(idsOf(await take(fixture)), ["b", "c"]);
});

Deno.test("a lease that is not the batch's, or has run out, moves nothing", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  const batch = await lease(fixture, ["1"]);
  for (const leaseId of [randomUUID(), "no lease", batch.leaseId!.toUpperCase()]) {
    const { outcomes } = await ack(fixture, { ...batch, leaseId }, { "1": "completed" });
    assert.deepEqual(outcomes, [INVALID]);
  }
  await sql.unsafe(`update ${schema}.cursor set lease_expires_at = now() - interval '1 s'`);
  for (const status of ["completed", "retry", "failed", "dlq"] as const) {
    assert.deepEqual((await ack(fixture, batch, { "1": status })).outcomes, [INVALID]);
  }
  assert.deepEqual(await deadLetters(fixture), []);
  await sql.unsafe(`update ${schema}.cursor set lease_expires_at = now() + interval '60 s'`);
  assert.deepEqual((await ack(fixture, batch, { "1": "completed" })).outcomes, [RELEASED]);
  const [message] = await store.ack(TENANT, [
    { partitionId: batch.partitionId, transactionId: "1", status: "completed" },
  ]).then(({ outcomes }) => outcomes);
  assert.deepEqual(message, NOOP);
});

Deno.test("the lease is judged after the wait for the cursor, not before", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  const batch = await lease(fixture, ["1"]);
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(
    `update ${schema}.cursor set lease_expires_at = now() - interval '1 s', ready_at = now()`,
  );
  const acked = ack(fixture, batch, { "1": "completed" });
  const deadline = AbortSignal.timeout(20_000);
  for (;;) {
    const waits = await sql.unsafe(
      `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}%'`,
    );
    if (waits.length > 0) break;
    if (deadline.aborted) assert.fail("the ack does not wait for the cursor");
  }
  await holder.unsafe("commit");
  holder.release();
  assert.deepEqual((await acked).outcomes, [INVALID]);
});

Deno.test("without a lease the cursor advances, but not beyond the present batch", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const { partitionId } = await lease(fixture, ["1", "2"]);
  await store.push(TENANT, [testItem("3")]);
  const ackBare = async (transactionId: string, status: Ack["status"] = "completed") =>
    (await store.ack(TENANT, [{ transactionId, partitionId, status }])).outcomes[0];
  assert.deepEqual(await ackBare("3"), NOT_THERE);
  assert.deepEqual(await ackBare("1"), DONE);
  assert.deepEqual(await ackBare("1"), NOOP);
  assert.deepEqual(await ackBare("2"), RELEASED);
  assert.deepEqual(await ackBare("3"), NOT_THERE);
  assert.deepEqual(await ackBare("2", "failed"), DONE_BEFORE);
  assert.deepEqual(await ackBare("2", "dlq"), DONE_BEFORE);
  assert.deepEqual(await ackBare("9"), NOT_THERE);
  assert.deepEqual(idsOf(await take(fixture)), ["3"]);
});

Deno.test("an ack of another partition or group does not fail the others", async () => {
  await using fixture = await open();
  const { partitionId, leaseId } = await lease(fixture, ["1"]);
  const good = { transactionId: "1", partitionId, status: "completed" } as const;
  const unknown = failure("unknown partition or consumer group");
  const { outcomes } = await fixture.store.ack(TENANT, [
    { ...good, partitionId: randomUUID() },
    { ...good, partitionId: "Default" },
    { ...good, consumerGroup: "nobody" },
    { ...good, consumerGroup: "nobody", leaseId: leaseId! },
    { ...good, leaseId: leaseId! },
  ]);
  assert.deepEqual(outcomes, [unknown, unknown, unknown, INVALID, RELEASED]);
});

Deno.test("one call may acknowledge batches of several partitions", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.push(
    TENANT,
    ["a", "b"].flatMap((partition) => [
      testItem("1", { partition }),
      testItem("2", { partition }),
    ]),
  );
  const [first, second] = [await take(fixture), await take(fixture)];
  const { outcomes, available } = await store.ack(TENANT, [
    { transactionId: "1", partitionId: second.partitionId, status: "completed" },
    { transactionId: "2", partitionId: first.partitionId, status: "completed" },
    { transactionId: "2", partitionId: second.partitionId, status: "retry" },
  ]);
  assert.deepEqual(outcomes, [RELEASED, RELEASED, RELEASED]);
  assert.deepEqual(available, [{ ...DEFAULT, partition: second.partition }]);
  assert.deepEqual(idsOf(await take(fixture)), ["2"]);
  assert.ok(await isEmpty(fixture));
});

Deno.test("a failed message is delivered again, and dead-lettered over the limit", async () => {
  await using fixture = await open();
  let batch = await lease(fixture, ["1", "2"], { retryLimit: 2 });
  for (let retry = 0; retry < 2; retry++) {
    assert.deepEqual((await ack(fixture, batch, { "1": "failed" })).outcomes, [RELEASED]);
    batch = await take(fixture);
    assert.deepEqual(idsOf(batch), ["1", "2"]);
  }
  assert.deepEqual((await ack(fixture, batch, { "1": "failed" })).outcomes, [{
    ...DONE,
    dlq: true,
  }]);
  assert.deepEqual(await deadLetters(fixture), [["1", "failed 1", 2, `"1"`]]);
  // The batch goes on, and the next failure is its own first.
  assert.deepEqual((await ack(fixture, batch, { "2": "failed" })).outcomes, [RELEASED]);
  assert.deepEqual(idsOf(await take(fixture)), ["2"]);
});

Deno.test("the count of tries starts over when a batch completes, and retry charges none", async () => {
  await using fixture = await open();
  const batch = await lease(fixture, ["1"], { retryLimit: 1 });
  await ack(fixture, batch, { "1": "failed" });
  for (let retry = 0; retry < 3; retry++) {
    await ack(fixture, await take(fixture), { "1": "retry" });
  }
  await ack(fixture, await take(fixture), { "1": "completed" });
  await fixture.store.push(TENANT, [testItem("2")]);
  await ack(fixture, await take(fixture), { "2": "failed" });
  const { outcomes } = await ack(fixture, await take(fixture), { "2": "failed" });
  assert.deepEqual(outcomes, [{ ...RELEASED, dlq: true }]);
  assert.ok(await isEmpty(fixture));
});

Deno.test("a failed batch waits for the retryDelay, one given back does not", async () => {
  await using fixture = await open();
  const batch = await lease(fixture, ["1"], { retryDelay: 60_000 });
  const failed = await ack(fixture, batch, { "1": "failed" });
  assert.deepEqual(failed.available, []);
  assert.deepEqual(failed.delayed, [{ ...DEFAULT, delayMs: 60_000 }]);
  assert.ok(await isEmpty(fixture));
  await fixture.store.push(TENANT, [testItem("2")]);
  assert.ok(await isEmpty(fixture));
  await fixture.sql.unsafe(
    `update ${fixture.schema}.cursor set ready_at = ready_at - interval '60 s'`,
  );
  const again = await take(fixture);
  assert.deepEqual(idsOf(again), ["1", "2"]);
  const given = await ack(fixture, again, { "1": "retry" });
  assert.deepEqual(given.available, [DEFAULT]);
  assert.deepEqual(idsOf(await take(fixture)), ["1", "2"]);
});

Deno.test("a message given up without a dead letter is done all the same", async () => {
  await using fixture = await open();
  const options = { retryLimit: 0, dlqAfterMaxRetries: false };
  const batch = await lease(fixture, ["1", "2"], options);
  assert.deepEqual((await ack(fixture, batch, { "1": "failed" })).outcomes, [DONE]);
  assert.deepEqual((await ack(fixture, batch, { "2": "completed" })).outcomes, [RELEASED]);
  assert.deepEqual(await deadLetters(fixture), []);
  assert.ok(await isEmpty(fixture));
});

Deno.test("a dead-lettered message does not come again, wherever it was in the batch", async () => {
  await using fixture = await open();
  const batch = await lease(fixture, ["1", "2", "3", "4"]);
  const dead = { ...DONE, dlq: true };
  assert.deepEqual((await ack(fixture, batch, { "3": "dlq" })).outcomes, [dead]);
  assert.deepEqual((await ack(fixture, batch, { "3": "completed" })).outcomes, [NOOP]);
  assert.deepEqual((await ack(fixture, batch, { "3": "dlq" })).outcomes, [DONE_BEFORE]);
  const { outcomes } = await ack(fixture, batch, { "1": "dlq", "2": "retry", "4": "dlq" });
  assert.deepEqual(outcomes, [
    { ...RELEASED, dlq: true },
    RELEASED,
    { ...RELEASED, dlq: true },
  ]);
  const again = await take(fixture);
  assert.deepEqual(idsOf(again), ["2"]);
  assert.deepEqual((await ack(fixture, again, { "2": "completed" })).outcomes, [RELEASED]);
  assert.ok(await isEmpty(fixture));
  assert.deepEqual((await deadLetters(fixture)).map((row) => (row as string[])[0]), [
    "1",
    "3",
    "4",
  ]);
  const [row] = await fixture.sql.unsafe(
    `select committed, settled from ${fixture.schema}.cursor`,
  );
  assert.deepEqual({ ...row }, { committed: "4", settled: [] });
});

Deno.test("a batch whose messages are all dead-lettered is over", async () => {
  await using fixture = await open();
  const batch = await lease(fixture, ["1", "2"]);
  await ack(fixture, batch, { "2": "dlq" });
  assert.deepEqual((await ack(fixture, batch, { "1": "dlq" })).outcomes, [
    { ...RELEASED, dlq: true },
  ]);
  assert.ok(await isEmpty(fixture));
});

Deno.test("a transactionId that occurs again means its occurrence in the batch", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const first = await lease(fixture, ["same"], { dedupWindowSeconds: 0 });
  await ack(fixture, first, { same: "completed" });
  await store.push(TENANT, [testItem("same"), testItem("x"), testItem("same"), testItem("y")]);
  const { partitionId, leaseId } = await take(fixture);
  const same: Ack = {
    transactionId: "same",
    partitionId,
    leaseId: leaseId!,
    status: "completed",
  };
  const retry: Ack = { ...same, status: "retry" };
  // The first occurrence completes, the second one is given back, and x between them is not done.
  assert.deepEqual((await store.ack(TENANT, [same, retry])).outcomes, [RELEASED, RELEASED]);
  const rest = await take(fixture);
  assert.deepEqual(idsOf(rest), ["x", "same", "y"]);
  const { outcomes } = await ack(fixture, rest, { same: "completed" });
  assert.deepEqual(outcomes, [DONE]);
  assert.deepEqual((await ack(fixture, rest, { same: "completed" })).outcomes, [NOOP]);
});
