import assert from "node:assert/strict";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { PopQuery, SweepPosition } from "./store.ts";

const open = useTestStores();

async function take({ store }: TestStore, changes: Partial<PopQuery> = {}) {
  const query = { queue: "orders", batch: 100, autoAck: false, ...changes };
  return (await store.pop(TENANT, query)).batch;
}

/** Sweeps to the end; returns how many messages that removed. */
async function sweep({ store }: TestStore): Promise<number> {
  let removed = 0;
  let position: SweepPosition | undefined;
  do {
    const step = await store.sweep(position);
    assert.equal(step.isBusy, false);
    removed += step.removed;
    position = step.next;
  } while (position !== undefined);
  return removed;
}

/** Makes all messages of these transactions older, and what was seen of completions too. */
async function age({ sql, schema }: TestStore, seconds: number, ids?: readonly string[]) {
  await sql.unsafe(
    `update ${schema}.message set created_at = created_at - interval '${seconds} s'
      ${ids === undefined ? "" : `where transaction_id in (${ids.map((id) => `'${id}'`)})`}`,
  );
  await sql.unsafe(
    `update ${schema}.completion set seen_at = seen_at - interval '${seconds} s'`,
  );
}

async function left({ sql, schema }: TestStore): Promise<string[]> {
  const rows = await sql.unsafe(
    `select transaction_id from ${schema}.message order by partition_id, number`,
  );
  return rows.map((row) => row["transaction_id"]);
}

async function configure({ store }: TestStore, options: Record<string, unknown>): Promise<void> {
  await store.configure(TENANT, { queue: "orders", options: { retryDelay: 0, ...options } });
}

const ids = (count: number) => Array.from({ length: count }, (_, i) => String(i + 1));

Deno.test("a sweep removes what is older than retentionSeconds, consumed or not", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await configure(fixture, { retentionSeconds: 100 });
  await store.push(TENANT, ids(4).map((id) => testItem(id)));
  await store.push(TENANT, [testItem("kept", { queue: "other" })]);
  await age(fixture, 99, ["1", "2", "3", "4"]);
  assert.equal(await sweep(fixture), 0);
  await age(fixture, 2, ["1", "2"]);
  await age(fixture, 1000, ["kept"]);
  assert.equal(await sweep(fixture), 2);
  assert.deepEqual((await left(fixture)).sort(), ["3", "4", "kept"]);
  // The cursor points below what is gone.
  assert.deepEqual((await take(fixture))?.messages.map((m) => m.transactionId), ["3", "4"]);
});

Deno.test("a partition whose messages were all removed goes on with the next push", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await configure(fixture, { retentionSeconds: 100 });
  await store.push(TENANT, ids(3).map((id) => testItem(id)));
  await age(fixture, 101);
  assert.equal(await sweep(fixture), 3);
  assert.equal(await take(fixture), undefined);
  assert.equal(await take(fixture), undefined);
  await store.push(TENANT, [testItem("4")]);
  const batch = (await take(fixture))!;
  assert.deepEqual(batch.messages.map((m) => m.transactionId), ["4"]);
  const { partitionId, leaseId } = batch;
  const { outcomes } = await store.ack(TENANT, [
    { transactionId: "4", partitionId, leaseId: leaseId!, status: "completed" },
  ]);
  assert.deepEqual(outcomes.map(({ leaseReleased }) => leaseReleased), [true]);
});

Deno.test("what is leased stays until the lease is over", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await configure(fixture, { retentionSeconds: 100 });
  await store.push(TENANT, ids(4).map((id) => testItem(id)));
  const first = (await take(fixture, { batch: 1, autoAck: true }))!;
  assert.equal(first.messages.length, 1);
  const batch = (await take(fixture, { batch: 2 }))!;
  await age(fixture, 101);
  assert.equal(await sweep(fixture), 1);
  assert.deepEqual(await left(fixture), ["2", "3", "4"]);
  const { partitionId, leaseId } = batch;
  const { outcomes } = await store.ack(TENANT, [
    { transactionId: "2", partitionId, leaseId: leaseId!, status: "completed" },
  ]);
  assert.equal(outcomes[0]?.success, true);
  await sql.unsafe(`update ${schema}.cursor set lease_expires_at = now(), ready_at = now()`);
  assert.equal(await sweep(fixture), 3);
  assert.equal(await take(fixture), undefined);
});

Deno.test("a sweep passes over what a cursor's holder may be about to lease", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await configure(fixture, { retentionSeconds: 100 });
  await store.push(TENANT, [testItem("1")]);
  await age(fixture, 101);
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(`select from ${schema}.cursor for update`);
  assert.equal(await sweep(fixture), 0);
  await holder.unsafe("commit");
  holder.release();
  assert.equal(await sweep(fixture), 1);
});

Deno.test("what every group has completed is removed after completedRetentionSeconds", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await configure(fixture, { completedRetentionSeconds: 100 });
  await store.push(TENANT, ids(4).map((id) => testItem(id)));
  await sql.unsafe(
    `insert into ${schema}.cursor (partition_id, consumer_group, queue_id)
      select partition_id, 'g', queue_id from ${schema}.cursor`,
  );
  await sql.unsafe(
    `insert into ${schema}.consumer_group select id, 'g', '-infinity' from ${schema}.queue`,
  );
  await take(fixture, { batch: 3, autoAck: true });
  await age(fixture, 1000);
  assert.equal(await sweep(fixture), 0, "g is done with nothing");
  await sql.unsafe(`update ${schema}.cursor set committed = 2 where consumer_group = 'g'`);
  assert.equal(await sweep(fixture), 0, "completed just now, however old it is");
  await age(fixture, 99);
  assert.equal(await sweep(fixture), 0);
  await age(fixture, 2);
  assert.equal(await sweep(fixture), 2);
  assert.deepEqual(await left(fixture), ["3", "4"]);
  assert.deepEqual((await take(fixture))?.messages.map((m) => m.transactionId), ["4"]);
});

Deno.test("a queue that is popped by groups alone does not wait for queue mode", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await configure(fixture, { completedRetentionSeconds: 10 });
  await store.push(TENANT, ids(2).map((id) => testItem(id)));
  await sql.unsafe(
    `insert into ${schema}.cursor (partition_id, consumer_group, queue_id, committed)
      select partition_id, 'g', queue_id, 2 from ${schema}.cursor`,
  );
  await sql.unsafe(
    `insert into ${schema}.consumer_group select id, 'g', '-infinity' from ${schema}.queue`,
  );
  assert.equal(await sweep(fixture), 0);
  await age(fixture, 11);
  // Queue mode is in use from its first pop of anything in the queue.
  await store.push(TENANT, [testItem("x", { partition: "p" })]);
  await take(fixture, { partition: "p" });
  assert.equal(await sweep(fixture), 0);
  await sql.unsafe(`update ${schema}.queue set queue_mode_used = false`);
  await sql.unsafe(
    `update ${schema}.cursor set lease_id = null, lease_end = 0, lease_expires_at = null`,
  );
  assert.equal(await sweep(fixture), 2);
});

Deno.test("a group that comes later keeps what it has not completed", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await configure(fixture, { completedRetentionSeconds: 10 });
  await store.push(TENANT, ids(3).map((id) => testItem(id)));
  await take(fixture, { autoAck: true });
  await sweep(fixture);
  await age(fixture, 11);
  await sql.unsafe(
    `insert into ${schema}.cursor (partition_id, consumer_group, queue_id, committed)
      select partition_id, 'late', queue_id, 1 from ${schema}.cursor`,
  );
  assert.equal(await sweep(fixture), 1);
  assert.deepEqual(await left(fixture), ["2", "3"]);
});

Deno.test("what was removed within its dedup window still makes duplicates", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await configure(fixture, { retentionSeconds: 10, dedupWindowSeconds: 100 });
  const first = testItem("t");
  await store.push(TENANT, [first, testItem("other")]);
  await age(fixture, 11);
  assert.equal(await sweep(fixture), 2);
  const again = testItem("t");
  const { outcomes, touched } = await store.push(TENANT, [again, testItem("new")]);
  assert.deepEqual(outcomes[0], { status: "duplicate", messageId: first.messageId });
  assert.equal(outcomes[1]?.status, "queued");
  assert.equal(touched.length, 1);
  await sql.unsafe(
    `update ${schema}.swept set accepted_at = accepted_at - interval '90 s' where transaction_id = 't'`,
  );
  assert.equal((await store.push(TENANT, [again])).outcomes[0]?.status, "queued");
  await sweep(fixture);
  const rows = await sql.unsafe(`select transaction_id from ${schema}.swept`);
  assert.deepEqual(rows.map((row) => row["transaction_id"]), ["other"]);
});

Deno.test("a transactionId that was removed twice is known by its last message", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await configure(fixture, { retentionSeconds: 10, dedupWindowSeconds: 0 });
  const items = [testItem("t"), testItem("t"), testItem("t")];
  for (const item of items) await store.push(TENANT, [item]);
  await configure(fixture, { dedupWindowSeconds: 100 });
  await age(fixture, 11);
  assert.equal(await sweep(fixture), 3);
  const { outcomes } = await store.push(TENANT, [testItem("t")]);
  assert.deepEqual(outcomes, [{ status: "duplicate", messageId: items[2]!.messageId }]);
  await sql.unsafe(`delete from ${schema}.swept`);
  const last = testItem("t");
  await store.push(TENANT, [last]);
  await sql.unsafe(`insert into ${schema}.swept
    select partition_id, 't', gen_random_uuid(), now() - interval '60 s' from ${schema}.message`);
  await age(fixture, 11);
  await sweep(fixture);
  const known = await store.push(TENANT, [testItem("t")]);
  assert.equal(known.outcomes[0]?.messageId, last.messageId);
});

Deno.test("a sweep goes on in small steps, over partitions and queues", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  for (const queue of ["a", "b"]) {
    await store.configure(TENANT, { queue, options: { retentionSeconds: 100 } });
    await store.push(
      TENANT,
      ids(700).map((id) => testItem(id, { queue, partition: `p${id}` })),
    );
  }
  await sql.unsafe(
    `insert into ${schema}.message (partition_id, number, id, transaction_id, payload, encrypted, created_at)
      select id, number, gen_random_uuid(), number::text, '1', false, now()
        from ${schema}.partition, generate_series(2, 5000) number where name = 'p7'`,
  );
  await age(fixture, 101);
  const steps: number[] = [];
  let position: SweepPosition | undefined;
  do {
    const { removed, next } = await store.sweep(position);
    steps.push(removed);
    position = next;
  } while (position !== undefined);
  assert.equal(steps.reduce((sum, removed) => sum + removed), 2 * (700 + 4999));
  assert.ok(Math.max(...steps) <= 1000, String(steps));
  assert.deepEqual(await left(fixture), []);
});

Deno.test("one replica sweeps at a time", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await configure(fixture, { retentionSeconds: 100 });
  await store.push(TENANT, [testItem("1")]);
  await age(fixture, 101);
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(`select * from ${schema}.sweep(null, null)`);
  const other = fixture.another();
  await other.migrate();
  assert.deepEqual(await other.sweep(undefined), { isBusy: true, removed: 0, next: undefined });
  await holder.unsafe("rollback");
  holder.release();
  assert.equal((await other.sweep(undefined)).removed, 1);
});

Deno.test("a sweep finishes what a delete has left", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.push(TENANT, ids(3).map((id) => testItem(id, { partition: id })));
  await store.deleteQueue(TENANT, "orders");
  await sweep(fixture);
  for (const table of ["queue", "partition", "cursor", "message"]) {
    const [row] = await sql.unsafe(`select count(*)::integer as count from ${schema}.${table}`);
    assert.equal(row!["count"], 0, table);
  }
});
