import assert from "node:assert/strict";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { PoppedBatch } from "./store.ts";

const open = useTestStores();

const TABLES = [
  "queue",
  "partition",
  "message",
  "cursor",
  "consumer_group",
  "dead_letter",
  "completion",
  "swept",
];

async function counts({ sql, schema }: TestStore): Promise<Record<string, number>> {
  const result: Record<string, number> = {};
  for (const table of TABLES) {
    const [row] = await sql.unsafe(`select count(*)::integer as count from ${schema}.${table}`);
    if (row!["count"] > 0) result[table] = row!["count"];
  }
  return result;
}

/** Deletes a queue with all that it holds. */
async function remove({ store }: TestStore, queue: string): Promise<boolean> {
  const id = await store.deleteQueue(TENANT, queue);
  if (id === undefined) return false;
  while (await store.purge(id));
  return true;
}

/** Removes what deletions have left that met a statement under way on the queue's row. */
async function sweep({ store }: TestStore): Promise<void> {
  let step = await store.sweep(undefined);
  while (step.next !== undefined) step = await store.sweep(step.next);
}

async function take({ store }: TestStore, queue = "orders"): Promise<PoppedBatch | undefined> {
  return (await store.pop(TENANT, { queue, batch: 10, autoAck: false })).batch;
}

/** Waits until a statement of this schema waits for a lock. */
async function untilBlocked({ sql, schema }: TestStore): Promise<void> {
  const deadline = AbortSignal.timeout(20_000);
  for (;;) {
    const waits = await sql.unsafe(
      `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%${schema}%'`,
    );
    if (waits.length > 0) return;
    if (deadline.aborted) assert.fail("nothing waits for a lock");
  }
}

Deno.test("a deleted queue leaves nothing, and its neighbours lose nothing", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.push(TENANT, [
    testItem("1"),
    testItem("2", { partition: "p" }),
    testItem("3", { queue: "other" }),
  ]);
  const { partitionId } = (await take(fixture))!;
  const [message] = await sql.unsafe(`select transaction_id from ${schema}.message
    where partition_id = '${partitionId}'`);
  const transactionId = message!["transaction_id"];
  await store.ack(TENANT, [{ transactionId, partitionId, status: "dlq" }]);
  await sql.unsafe(`insert into ${schema}.consumer_group
    select id, 'g', now() from ${schema}.queue where name = 'orders'`);
  await sql.unsafe(`insert into ${schema}.completion values ('${partitionId}', 1, now())`);
  await sql.unsafe(`insert into ${schema}.swept
    values ('${partitionId}', 'old', gen_random_uuid(), now())`);
  assert.equal(await remove(fixture, "orders"), true);
  assert.deepEqual(await counts(fixture), { queue: 1, partition: 1, message: 1, cursor: 1 });
  assert.equal((await take(fixture, "other"))?.messages[0]?.transactionId, "3");
  assert.equal(await remove(fixture, "orders"), false);
  assert.equal(await remove(fixture, "never there"), false);
});

Deno.test("a queue of more than one step is removed in several", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.push(TENANT, [testItem("1")]);
  await sql.unsafe(
    `insert into ${schema}.message (partition_id, number, id, transaction_id, payload, encrypted, created_at)
      select id, number, gen_random_uuid(), number::text, '1', false, now()
        from ${schema}.partition, generate_series(2, 7001) number`,
  );
  await sql.unsafe(
    `insert into ${schema}.partition (queue_id, name)
      select id, number::text from ${schema}.queue, generate_series(1, 500) number`,
  );
  const id = await store.deleteQueue(TENANT, "orders");
  let steps = 1;
  while (await store.purge(id!)) steps++;
  assert.ok(steps > 3, String(steps));
  assert.deepEqual(await counts(fixture), {});
});

Deno.test("what a deleted queue still holds cannot be found, and its name can be used anew", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.push(TENANT, [testItem("1"), testItem("2", { partition: "p" })]);
  const batch = (await take(fixture))!;
  const id = await store.deleteQueue(TENANT, "orders");
  assert.equal(await take(fixture), undefined);
  const { partitionId, leaseId } = batch;
  const { outcomes } = await store.ack(TENANT, [
    { transactionId: "1", partitionId, leaseId: leaseId!, status: "completed" },
    { transactionId: "1", partitionId, status: "completed" },
  ]);
  assert.deepEqual(outcomes.map(({ error }) => error), [
    "invalid or expired lease",
    "unknown partition or consumer group",
  ]);
  assert.equal(await store.giveBack(TENANT, leaseId!), undefined);
  // The same transactionId is no duplicate: this is another queue.
  const again = await store.push(TENANT, [testItem("1")]);
  assert.equal(again.outcomes[0]?.status, "queued");
  while (await store.purge(id!));
  const anew = (await take(fixture))!;
  assert.equal(anew.messages.length, 1);
  assert.notEqual(anew.partitionId, partitionId);
  const settings = await store.configure(TENANT, { queue: "orders" });
  assert.equal(settings.options["leaseTime"], 60);
});

Deno.test("a push that waits for a partition of a queue that is deleted lands in a new one", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.push(TENANT, [testItem("1")]);
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(`select from ${schema}.partition for update`);
  const pushing = store.push(TENANT, [testItem("2")]);
  await untilBlocked(fixture);
  await holder.unsafe(`delete from ${schema}.message`);
  await holder.unsafe(`delete from ${schema}.queue`);
  await holder.unsafe("commit");
  holder.release();
  assert.equal((await pushing).outcomes[0]?.status, "queued");
  assert.deepEqual((await take(fixture))?.messages.map((m) => m.transactionId), ["2"]);
  assert.deepEqual(await counts(fixture), { queue: 1, partition: 1, message: 1, cursor: 1 });
});

Deno.test("a push that makes a partition in a queue that is being deleted lands in a new one", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.push(TENANT, [testItem("1")]);
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(`update ${schema}.queue set tenant = null`);
  const pushing = store.push(TENANT, [testItem("2", { partition: "new" })]);
  await untilBlocked(fixture);
  await holder.unsafe("commit");
  holder.release();
  assert.equal((await pushing).outcomes[0]?.status, "queued");
  assert.deepEqual((await take(fixture))?.messages.map((m) => m.transactionId), ["2"]);
});

Deno.test("pushes, pops and acks during deletions all end well", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const consume = async () => {
    for (let i = 0; i < 30; i++) {
      const batch = await take(fixture);
      if (batch === undefined) continue;
      const { partitionId, leaseId, messages } = batch;
      await store.ack(
        TENANT,
        messages.map(({ transactionId }, i) => ({
          transactionId,
          partitionId,
          leaseId: leaseId!,
          status: i % 2 === 0 ? "completed" : "dlq",
        })),
      );
    }
  };
  const produce = async (name: string) => {
    for (let i = 0; i < 30; i++) {
      const { outcomes } = await store.push(TENANT, [
        testItem(`${name} ${i} a`, { partition: `p${i % 3}` }),
        testItem(`${name} ${i} b`, { partition: `p${(i + 1) % 3}` }),
      ]);
      assert.deepEqual(outcomes.map(({ status }) => status), ["queued", "queued"]);
    }
  };
  const work = Promise.all([consume(), consume(), produce("x"), produce("y")]);
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  while (!isOver) await remove(fixture, "orders");
  await over;
  await remove(fixture, "orders");
  await sweep(fixture);
  assert.deepEqual(await counts(fixture), {});
});
