import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { Ack, AckOutcome } from "./store.ts";

const open = useTestStores();

const OUTCOME: AckOutcome = { success: true, leaseReleased: false, dlq: false, noop: false };
const RELEASED: AckOutcome = { ...OUTCOME, leaseReleased: true };
const INVALID = { ...OUTCOME, success: false, error: "invalid or expired lease" };

/** Pushes messages and leases them to queue mode; returns the partition and the lease. */
async function lease(
  { store }: TestStore,
  { ids = ["1"], leaseSeconds = 60 }: { ids?: readonly string[]; leaseSeconds?: number } = {},
): Promise<{ partitionId: string; leaseId: string }> {
  await store.configure(TENANT, { queue: "orders", options: { retryDelay: 0, retryLimit: 1 } });
  await store.push(TENANT, ids.map((id) => testItem(id)));
  const { batch } = await store.pop(TENANT, {
    queue: "orders",
    batch: 100,
    leaseSeconds,
    autoAck: false,
  });
  return { partitionId: batch!.partitionId, leaseId: batch!.leaseId! };
}

/** Leases to another group what queue mode has leased. */
async function leaseToGroup({ sql, schema }: TestStore, group: string): Promise<string> {
  const leaseId = randomUUID();
  await sql.unsafe(
    `insert into ${schema}.cursor
        (partition_id, consumer_group, queue_id, ready_at, lease_id, lease_end, lease_expires_at)
      select partition_id, $1::text, queue_id, ready_at, $2::uuid, lease_end, lease_expires_at
        from ${schema}.cursor where consumer_group = '__QUEUE_MODE__'
      on conflict (partition_id, consumer_group)
        do update set lease_id = $2::uuid, lease_end = excluded.lease_end,
          lease_expires_at = excluded.lease_expires_at`,
    [group, leaseId],
  );
  return leaseId;
}

async function committed({ sql, schema }: TestStore): Promise<Record<string, number>> {
  const rows = await sql.unsafe(`select consumer_group, committed from ${schema}.cursor`);
  return Object.fromEntries(rows.map((row) => [row["consumer_group"], Number(row["committed"])]));
}

Deno.test("a lease of one group moves that group's cursor alone", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const { partitionId, leaseId } = await lease(fixture);
  const ofGroup = await leaseToGroup(fixture, "g");
  const ack = (consumerGroup: string | undefined, leaseId: string): Ack => ({
    transactionId: "1",
    partitionId,
    status: "completed",
    leaseId,
    ...(consumerGroup === undefined ? {} : { consumerGroup }),
  });
  const wrong = await store.ack(TENANT, [ack("g", leaseId), ack(undefined, ofGroup)]);
  assert.deepEqual(wrong.outcomes, [INVALID, INVALID]);
  assert.deepEqual(await committed(fixture), { __QUEUE_MODE__: 0, g: 0 });
  assert.deepEqual((await store.ack(TENANT, [ack("g", ofGroup)])).outcomes, [RELEASED]);
  assert.deepEqual(await committed(fixture), { __QUEUE_MODE__: 0, g: 1 });
  assert.deepEqual((await store.ack(TENANT, [ack(undefined, leaseId)])).outcomes, [RELEASED]);
  assert.deepEqual(await committed(fixture), { __QUEUE_MODE__: 1, g: 1 });
});

Deno.test("tries are counted for each group by itself", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const { partitionId, leaseId } = await lease(fixture);
  const failed = { transactionId: "1", partitionId, status: "failed" } as const;
  await leaseToGroup(fixture, "g");
  const first = await store.ack(TENANT, [{ ...failed, leaseId }, {
    ...failed,
    consumerGroup: "g",
  }]);
  assert.deepEqual(first.outcomes, [RELEASED, RELEASED]);
  const { batch } = await store.pop(TENANT, { queue: "orders", batch: 100, autoAck: false });
  const second = await store.ack(TENANT, [{ ...failed, leaseId: batch!.leaseId! }]);
  assert.deepEqual(second.outcomes, [{ ...RELEASED, dlq: true }]);
  await leaseToGroup(fixture, "g");
  const { sql, schema } = fixture;
  await sql.unsafe(
    `update ${schema}.cursor set lease_end = 1, lease_expires_at = now() + interval '60 s'
      where consumer_group = 'g'`,
  );
  const third = await store.ack(TENANT, [{ ...failed, consumerGroup: "g" }]);
  assert.deepEqual(third.outcomes, [{ ...RELEASED, dlq: true }]);
  const letters = await sql.unsafe(
    `select consumer_group from ${schema}.dead_letter order by consumer_group`,
  );
  assert.deepEqual(letters.map((row) => row["consumer_group"]), ["__QUEUE_MODE__", "g"]);
});

Deno.test("what becomes available is told with the group that can take it", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const { partitionId, leaseId } = await lease(fixture);
  await leaseToGroup(fixture, "g");
  const retry = { transactionId: "1", partitionId, status: "retry" } as const;
  const { available } = await store.ack(TENANT, [
    { ...retry, leaseId },
    { ...retry, consumerGroup: "g" },
  ]);
  const place = { queue: "orders", partition: "Default" };
  assert.deepEqual(available, [
    { ...place, consumerGroup: "__QUEUE_MODE__" },
    { ...place, consumerGroup: "g" },
  ]);
});

Deno.test("a lease that runs out while it is being acknowledged moves nothing", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  const { partitionId, leaseId } = await lease(fixture, { ids: ["1", "2"], leaseSeconds: 1 });
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  const [held] = await holder.unsafe(
    `select clock_timestamp() < lease_expires_at as in_time from ${schema}.cursor for update`,
  );
  const acking = store.ack(TENANT, [
    { transactionId: "1", partitionId, leaseId, status: "completed" },
    { transactionId: "2", partitionId, leaseId, status: "dlq" },
  ]);
  const deadline = AbortSignal.timeout(20_000);
  for (;;) {
    const [row] = await sql.unsafe(
      `select (select clock_timestamp() > lease_expires_at from ${schema}.cursor) as is_over,
        exists (select from pg_stat_activity
          where wait_event_type = 'Lock' and query like '%${schema}%') as waits`,
    );
    if (row!["is_over"] && row!["waits"]) break;
    if (deadline.aborted) assert.fail("the ack does not wait, or the lease does not end");
  }
  await holder.unsafe("commit");
  holder.release();
  assert.equal(held!["in_time"], true);
  assert.deepEqual((await acking).outcomes, [INVALID, INVALID]);
  assert.deepEqual(await committed(fixture), { __QUEUE_MODE__: 0 });
  const { batch } = await store.pop(TENANT, { queue: "orders", batch: 100, autoAck: false });
  assert.equal(batch?.messages.length, 2);
});

Deno.test("texts that no text of PostgreSQL can be fail no call", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  const { partitionId, leaseId } = await lease(fixture);
  const ack: Ack = { transactionId: "1", partitionId, leaseId, status: "dlq", error: "a\0b" };
  const { outcomes } = await store.ack(TENANT, [{ ...ack, leaseId: "\0" }, ack]);
  assert.deepEqual(outcomes, [INVALID, { ...RELEASED, dlq: true }]);
  const [letter] = await sql.unsafe(`select error from ${schema}.dead_letter`);
  assert.equal(letter!["error"], "a\ufffdb");
});
