import assert from "node:assert/strict";
import { systemClock } from "../../runtime/system.ts";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { PopQuery, PopResult } from "./store.ts";

const open = useTestStores();

function pop({ store }: TestStore, changes: Partial<PopQuery> = {}): Promise<PopResult> {
  return store.pop(TENANT, {
    queue: "orders",
    batch: 100,
    autoAck: true,
    consumerGroup: "g",
    ...changes,
  });
}

function idsOf({ batch }: PopResult): string[] | undefined {
  return batch?.messages.map((message) => message.transactionId);
}

function push({ store }: TestStore, id: string, partition = "Default") {
  return store.push(TENANT, [testItem(id, { partition })]);
}

/** What PostgreSQL's clock says. */
async function now({ sql }: TestStore): Promise<string> {
  const [row] = await sql.unsafe("select clock_timestamp()::text as now");
  return row!["now"];
}

Deno.test("a new group starts behind what is there, and gets all that comes", async () => {
  await using fixture = await open();
  await push(fixture, "1");
  assert.equal((await pop(fixture)).batch, undefined);
  await push(fixture, "2");
  await push(fixture, "3", "later");
  const taken = [await pop(fixture), await pop(fixture)].map(idsOf);
  assert.deepEqual(taken, [["2"], ["3"]]);
  assert.equal((await pop(fixture)).batch, undefined);
});

Deno.test("a group can begin without claiming anything, and its queue with it", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const begin = (changes: Partial<PopQuery> = {}) =>
    store.beginGroup(TENANT, {
      queue: "orders",
      batch: 100,
      autoAck: true,
      consumerGroup: "g",
      ...changes,
    });
  await begin();
  assert.notEqual(await store.queueConfig(TENANT, "orders"), undefined);
  await push(fixture, "1");
  await begin();
  await begin({ start: "all", consumerGroup: "h", partition: "Default" });
  assert.deepEqual(idsOf(await pop(fixture, { start: "all" })), ["1"]);
  assert.deepEqual(idsOf(await pop(fixture, { consumerGroup: "h" })), ["1"]);
});

Deno.test("a group that wants all starts at the beginning", async () => {
  await using fixture = await open();
  await push(fixture, "1");
  await push(fixture, "2");
  assert.deepEqual(idsOf(await pop(fixture, { start: "all" })), ["1", "2"]);
});

Deno.test("a group's start is recorded once, whatever later pops say", async () => {
  await using fixture = await open();
  await push(fixture, "1");
  assert.equal((await pop(fixture, { start: "new" })).batch, undefined);
  assert.equal((await pop(fixture, { start: "all" })).batch, undefined);
  await push(fixture, "2");
  assert.deepEqual(idsOf(await pop(fixture, { start: { at: "2000-01-01T00:00:00Z" } })), ["2"]);
});

Deno.test("groups and queue mode each get every message", async () => {
  await using fixture = await open();
  await push(fixture, "1");
  const { store } = fixture;
  for (const consumerGroup of ["a", "b"]) {
    assert.deepEqual(idsOf(await pop(fixture, { consumerGroup, start: "all" })), ["1"]);
  }
  const queueMode = await store.pop(TENANT, { queue: "orders", batch: 1, autoAck: true });
  assert.deepEqual(idsOf(queueMode), ["1"]);
  await push(fixture, "2");
  for (const consumerGroup of ["a", "b"]) {
    assert.deepEqual(idsOf(await pop(fixture, { consumerGroup })), ["2"]);
  }
});

Deno.test("queue mode always starts at the beginning", async () => {
  await using fixture = await open();
  await push(fixture, "1");
  const { store } = fixture;
  const query = { queue: "orders", batch: 1, autoAck: true, start: "new" } as const;
  assert.deepEqual(idsOf(await store.pop(TENANT, query)), ["1"]);
});

Deno.test("a group can start behind a point in time, in the middle of a partition", async () => {
  await using fixture = await open();
  for (let n = 1; n <= 9; n++) await push(fixture, `before ${n}`);
  const at = await now(fixture);
  for (let n = 1; n <= 6; n++) await push(fixture, `after ${n}`);
  const expected = [1, 2, 3, 4, 5, 6].map((n) => `after ${n}`);
  assert.deepEqual(idsOf(await pop(fixture, { start: { at } })), expected);
});

Deno.test("a point in time is found where a sweep has left gaps", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  for (let n = 1; n <= 9; n++) await push(fixture, `before ${n}`);
  const at = await now(fixture);
  await push(fixture, "after");
  await sql.unsafe(`delete from ${schema}.message where number in (1, 2, 3, 5, 6, 9)`);
  assert.deepEqual(idsOf(await pop(fixture, { start: { at } })), ["after"]);
});

Deno.test("a group that starts in the future gets nothing from before, on new partitions either", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  await push(fixture, "1");
  assert.equal((await pop(fixture, { start: { at: "2999-01-01T00:00:00Z" } })).batch, undefined);
  await push(fixture, "2");
  await push(fixture, "3", "made later");
  assert.equal((await pop(fixture)).batch, undefined);
  const ready = await sql.unsafe(
    `select from ${schema}.cursor where consumer_group = 'g' and ready_at is not null`,
  );
  assert.equal(ready.length, 0, "a pop still looks where nothing is for the group");
  await sql.unsafe(`update ${schema}.consumer_group set start_at = clock_timestamp()`);
  await push(fixture, "4", "made later");
  assert.deepEqual(idsOf(await pop(fixture)), ["4"]);
});

Deno.test("a group starts when its first pop arrived, not when it was asked of PostgreSQL", async () => {
  await using fixture = await open({ poolSize: 1 });
  const { another, sql, schema } = fixture;
  const elsewhere = another();
  await elsewhere.migrate();
  await push(fixture, "before");
  // The pop has waited here for a minute already, and before that there was "before".
  await sql.unsafe(
    `update ${schema}.message set created_at = created_at - interval '1 hour'`,
  );
  const arrivedAt = systemClock.now() - 60_000;
  // Every connection is busy while the pop waits for one.
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(`select from ${schema}.partition for update`);
  const blocked = push(fixture, "busy");
  const popping = pop(fixture, { arrivedAt });
  const meanwhile = await elsewhere.push(TENANT, [testItem("meanwhile", { partition: "other" })]);
  assert.equal(meanwhile.outcomes[0]?.status, "queued");
  await holder.unsafe("commit");
  holder.release();
  await blocked;
  const taken = [idsOf(await popping), idsOf(await pop(fixture))];
  assert.deepEqual(taken.toSorted(), [["busy"], ["meanwhile"]]);
});

Deno.test("a push that is under way while a group is recorded reaches the group", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  await push(fixture, "1");
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(
    `select * from ${schema}.push('${TENANT}', '{orders}', '{Default}',
      array[gen_random_uuid()], '{2}', '{2}')`,
  );
  assert.equal((await pop(fixture, { start: "all", batch: 1 })).batch?.messages.length, 1);
  assert.equal((await pop(fixture)).batch, undefined);
  await holder.unsafe("commit");
  holder.release();
  assert.deepEqual(idsOf(await pop(fixture)), ["2"]);
});

Deno.test("a message stored before the start is not delivered although it commits after it", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  await push(fixture, "1");
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(
    `select * from ${schema}.push('${TENANT}', '{orders}', '{Default}',
      array[gen_random_uuid()], '{2}', '{2}')`,
  );
  assert.equal((await pop(fixture)).batch, undefined);
  await holder.unsafe("commit");
  holder.release();
  await push(fixture, "3");
  assert.deepEqual(idsOf(await pop(fixture)), ["3"]);
});

Deno.test("first pops of a group at once record one start and lose nothing", async () => {
  await using fixture = await open({ poolSize: 10 });
  const names = Array.from({ length: 20 }, (_, n) => `p${n}`);
  await push(fixture, "old", "p0");
  const pops = names.map(() => pop(fixture));
  await Promise.all(pops);
  await Promise.all(names.map((partition) => push(fixture, "new", partition)));
  const taken = await Promise.all(names.map(() => pop(fixture)));
  assert.deepEqual(taken.map(({ batch }) => batch?.partition).toSorted(), names.toSorted());
  assert.ok(taken.every((result) => idsOf(result)?.join() === "new"));
});

Deno.test("partitions made while a group is recorded get its cursor", async () => {
  await using fixture = await open({ poolSize: 10 });
  const names = Array.from({ length: 30 }, (_, n) => `p${n}`);
  const first = pop(fixture, { arrivedAt: performance.now() });
  await Promise.all([first, ...names.map((partition) => push(fixture, "1", partition))]);
  const found = new Set<string | undefined>([(await first).batch?.partition]);
  for (let n = 0; n < names.length; n++) found.add((await pop(fixture)).batch?.partition);
  found.delete(undefined);
  assert.deepEqual([...found].toSorted(), names.toSorted());
});

Deno.test("a recording that broke off half-way is finished by the next pop, from the same start", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) await push(fixture, "old", name);
  const group = `'${TENANT}', 'orders', 'g'`;
  await sql.unsafe(`select ${schema}.record_group(${group}, null, 0)`);
  await push(fixture, "new", "f");
  const [first] = await sql.unsafe(`select ${schema}.make_cursors(${group}, 2) as is_done`);
  assert.equal(first!["is_done"], false);
  for (const name of names) await push(fixture, "new", name);
  const [queue] = await store.discover(TENANT, { consumerGroup: "g" });
  assert.equal(queue?.isWorthAPop, true, "a pop has to finish it");
  const taken = [];
  for (let n = 0; n <= names.length; n++) taken.push(await pop(fixture, { start: "all" }));
  assert.deepEqual(taken.map(({ batch }) => batch?.partition).toSorted(), [...names, "f"]);
  assert.ok(taken.every((result) => idsOf(result)?.join() === "new"));
});

Deno.test("of first pops that arrive together, the earliest counts", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  await push(fixture, "1");
  const group = `'${TENANT}', 'orders', 'g'`;
  const age = async () => {
    const [row] = await sql.unsafe(
      `select extract(epoch from clock_timestamp() - start_at) as s from ${schema}.consumer_group`,
    );
    return Number(row!["s"]);
  };
  for (const waitedMs of [0, 500_000, 100_000]) {
    await sql.unsafe(`select ${schema}.record_group(${group}, null, ${waitedMs})`);
  }
  assert.ok(await age() >= 500, `${await age()}`);
  // It is over once a cursor has been made.
  await sql.unsafe(`select ${schema}.make_cursors(${group}, 1)`);
  await sql.unsafe(`select ${schema}.record_group(${group}, null, 900000)`);
  assert.ok(await age() < 900, `${await age()}`);
  assert.deepEqual(idsOf(await pop(fixture)), ["1"]);
});

Deno.test("a group's cursors are made once, however many pops make them at once", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  const names = Array.from({ length: 9 }, (_, n) => `p${n}`);
  for (const name of names) await push(fixture, "1", name);
  const group = `'${TENANT}', 'orders', 'g'`;
  await sql.unsafe(`select ${schema}.record_group(${group}, '-infinity', 0)`);
  await Promise.all(
    names.map(() => sql.unsafe(`select ${schema}.make_cursors(${group}, 2)`)),
  );
  const taken = await Promise.all(names.map(() => pop(fixture)));
  assert.deepEqual(taken.map(({ batch }) => batch?.partition).toSorted(), names);
});

Deno.test("a partition that a group has leased gives it nothing more, and others all", async () => {
  await using fixture = await open();
  await push(fixture, "1");
  const first = await pop(fixture, { start: "all", autoAck: false });
  assert.deepEqual(idsOf(first), ["1"]);
  await push(fixture, "2");
  assert.equal((await pop(fixture, { partition: "Default" })).batch, undefined);
  assert.deepEqual(idsOf(await pop(fixture, { consumerGroup: "h", start: "all" })), ["1", "2"]);
  const { partitionId, leaseId } = first.batch!;
  const ack = { transactionId: "1", partitionId, leaseId: leaseId!, status: "completed" } as const;
  const { available } = await fixture.store.ack(TENANT, [{ ...ack, consumerGroup: "g" }]);
  assert.deepEqual(available, [
    { queue: "orders", partition: "Default", consumerGroup: "g" },
  ]);
  assert.deepEqual(idsOf(await pop(fixture, { partition: "Default" })), ["2"]);
});

Deno.test("two tenants' groups of one name have starts of their own", async () => {
  await using fixture = await open();
  const other = "00000000-0000-4000-8000-000000000002";
  const { store } = fixture;
  await store.push(other, [testItem("theirs")]);
  const query = { queue: "orders", batch: 1, autoAck: true, consumerGroup: "g" };
  assert.equal((await store.pop(other, query)).batch, undefined);
  await push(fixture, "mine");
  assert.deepEqual(idsOf(await pop(fixture, { start: "all" })), ["mine"]);
  assert.equal((await store.pop(other, { ...query, start: "all" })).batch, undefined);
});
