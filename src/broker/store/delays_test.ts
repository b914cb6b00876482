import assert from "node:assert/strict";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { PopQuery, PopResult } from "./store.ts";

const open = useTestStores();

/** So many milliseconds are a minute, if a test takes less than one. */
const isAboutAMinute = (ms: number | undefined) => ms !== undefined && ms > 0 && ms <= 60_000;

function pop({ store }: TestStore, changes: Partial<PopQuery> = {}): Promise<PopResult> {
  return store.pop(TENANT, { queue: "orders", batch: 1000, autoAck: true, ...changes });
}

function idsOf({ batch }: PopResult): string[] | undefined {
  return batch?.messages.map((message) => message.transactionId);
}

function configure({ store }: TestStore, options: Record<string, unknown>) {
  return store.configure(TENANT, { queue: "orders", options });
}

function push({ store }: TestStore, ...ids: string[]) {
  return store.push(TENANT, ids.map((id) => testItem(id)));
}

/** Lets `seconds` pass for the messages of these transactionIds, and for what waits for them. */
async function pass({ sql, schema }: TestStore, seconds: number, ...ids: string[]): Promise<void> {
  await sql.unsafe(
    `update ${schema}.message set created_at = created_at - $1::text::interval
      where transaction_id = any ($2::text[])`,
    [`${seconds} seconds`, ids],
  );
  await sql.unsafe(
    `update ${schema}.cursor set ready_at = ready_at - $1::text::interval where lease_id is null`,
    [`${seconds} seconds`],
  );
}

async function readyCount({ sql, schema }: TestStore): Promise<number> {
  const rows = await sql.unsafe(
    `select from ${schema}.cursor where ready_at <= clock_timestamp()`,
  );
  return rows.length;
}

Deno.test("a message can be taken only delayedProcessing seconds after its push", async () => {
  await using fixture = await open();
  await configure(fixture, { delayedProcessing: 60 });
  const { touched } = await push(fixture, "1");
  assert.ok(isAboutAMinute(touched[0]?.delayMs), `${touched[0]?.delayMs}`);
  assert.equal((await pop(fixture)).batch, undefined);
  assert.equal((await pop(fixture, { partition: "Default" })).batch, undefined);
  assert.deepEqual((await push(fixture, "2")).touched, [], "somebody is to be woken already");
  await pass(fixture, 60, "1");
  const first = await pop(fixture);
  assert.deepEqual(idsOf(first), ["1"]);
  assert.equal(first.left, undefined);
  assert.ok(isAboutAMinute(first.delayed?.[0]?.delayMs), "the next one matures later");
  assert.equal((await pop(fixture)).batch, undefined);
  await pass(fixture, 60, "2");
  assert.deepEqual(idsOf(await pop(fixture)), ["2"]);
});

Deno.test("an ack says when the next delayed message can be taken", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await configure(fixture, { delayedProcessing: 60 });
  await push(fixture, "1", "2");
  await pass(fixture, 60, "1");
  const { batch } = await pop(fixture, { autoAck: false });
  assert.deepEqual(batch?.messages.length, 1);
  const { available, delayed } = await store.ack(TENANT, [{
    transactionId: "1",
    partitionId: batch!.partitionId,
    leaseId: batch!.leaseId!,
    status: "completed",
  }]);
  assert.deepEqual(available, []);
  assert.ok(isAboutAMinute(delayed?.[0]?.delayMs));
  assert.equal(await readyCount(fixture), 0);
});

Deno.test("what is given back with a delay waits for no other", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await configure(fixture, { delayedProcessing: 60, windowBuffer: 60, retryDelay: 0 });
  await push(fixture, "1");
  await pass(fixture, 60, "1");
  const { batch } = await pop(fixture, { autoAck: false });
  const { available } = await store.ack(TENANT, [{
    transactionId: "1",
    partitionId: batch!.partitionId,
    status: "failed",
  }]);
  assert.equal(available.length, 1);
  assert.deepEqual(idsOf(await pop(fixture)), ["1"]);
});

Deno.test("new messages can be taken windowBuffer seconds after the first of them", async () => {
  await using fixture = await open();
  await configure(fixture, { windowBuffer: 60 });
  const { touched } = await push(fixture, "1");
  assert.ok(isAboutAMinute(touched[0]?.delayMs));
  assert.deepEqual((await push(fixture, "2")).touched, []);
  assert.equal((await pop(fixture)).batch, undefined);
  await pass(fixture, 60, "1");
  assert.deepEqual(idsOf(await pop(fixture)), ["1", "2"]);
  await push(fixture, "3");
  assert.equal((await pop(fixture)).batch, undefined, "a new window has begun");
  await pass(fixture, 60, "3");
  assert.deepEqual(idsOf(await pop(fixture)), ["3"]);
});

Deno.test("new messages can be taken once a hundred wait", async () => {
  await using fixture = await open();
  await configure(fixture, { windowBuffer: 60 });
  const ids = Array.from({ length: 99 }, (_, n) => `${n}`);
  await push(fixture, ...ids);
  assert.equal((await pop(fixture)).batch, undefined);
  const { touched } = await push(fixture, "99");
  assert.deepEqual(touched, [{ queue: "orders", partition: "Default" }]);
  const first = await pop(fixture, { batch: 60 });
  assert.equal(first.batch?.messages.length, 60);
  assert.deepEqual(first.left, [{ queue: "orders", partition: "Default" }]);
  await push(fixture, "new");
  assert.equal((await pop(fixture)).batch?.messages.length, 40, "the rest of the hundred");
  assert.equal((await pop(fixture)).batch, undefined, "the new one has its own window");
});

Deno.test("a hundred messages at once need no window", async () => {
  await using fixture = await open();
  await configure(fixture, { windowBuffer: 60 });
  const { touched } = await push(fixture, ...Array.from({ length: 100 }, (_, n) => `${n}`));
  assert.equal(touched[0]?.delayMs, undefined);
  assert.equal((await pop(fixture)).batch?.messages.length, 100);
});

Deno.test("a full window still waits for the delay of its first message", async () => {
  await using fixture = await open();
  await configure(fixture, { windowBuffer: 600, delayedProcessing: 60 });
  const ids = Array.from({ length: 100 }, (_, n) => `${n}`);
  await push(fixture, ...ids.slice(1));
  const { touched } = await push(fixture, ids[0]!);
  assert.ok(isAboutAMinute(touched[0]?.delayMs), `${touched[0]?.delayMs}`);
  assert.equal((await pop(fixture)).batch, undefined);
  await pass(fixture, 60, ...ids);
  assert.equal((await pop(fixture)).batch?.messages.length, 100);
});

Deno.test("each group has a window of its own", async () => {
  await using fixture = await open();
  await configure(fixture, { windowBuffer: 60 });
  const ofGroup = { consumerGroup: "g", start: "all" } as const;
  assert.equal((await pop(fixture, ofGroup)).batch, undefined);
  await push(fixture, "1");
  await pass(fixture, 60, "1");
  assert.deepEqual(idsOf(await pop(fixture)), ["1"]);
  await push(fixture, "2");
  assert.equal((await pop(fixture)).batch, undefined);
  assert.deepEqual(idsOf(await pop(fixture, ofGroup)), ["1", "2"]);
});

Deno.test("a push does not cut short the retryDelay of a queue with a window", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await configure(fixture, { windowBuffer: 60, retryDelay: 60_000 });
  await push(fixture, "1");
  await pass(fixture, 60, "1");
  const { batch } = await pop(fixture, { autoAck: false });
  const { partitionId } = batch!;
  await store.ack(TENANT, [{ transactionId: "1", partitionId, status: "failed" }]);
  await push(fixture, ...Array.from({ length: 200 }, (_, n) => `new ${n}`));
  assert.equal((await pop(fixture)).batch, undefined);
});

Deno.test("a changed delay holds for what waits already", async () => {
  await using fixture = await open();
  await configure(fixture, { delayedProcessing: 600 });
  await push(fixture, "1");
  await configure(fixture, { delayedProcessing: 0 });
  assert.deepEqual(idsOf(await pop(fixture)), ["1"]);
  await push(fixture, "2");
  await configure(fixture, { delayedProcessing: 600 });
  assert.equal((await pop(fixture)).batch, undefined);
  assert.equal(await readyCount(fixture), 0, "a pop still looks where nothing has matured");
  await configure(fixture, { delayedProcessing: 600, windowBuffer: 0 });
  await pass(fixture, 600, "2");
  assert.deepEqual(idsOf(await pop(fixture)), ["2"]);
});

Deno.test("a delayed message whose push an ack meets half-way does not stay where pops look", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await configure(fixture, { delayedProcessing: 60 });
  await push(fixture, "1");
  await pass(fixture, 60, "1");
  const { batch } = await pop(fixture, { autoAck: false });
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(
    `select * from ${schema}.push('${TENANT}', '{orders}', '{Default}',
      array[gen_random_uuid()], '{2}', '{2}')`,
  );
  const { available, delayed } = await store.ack(TENANT, [
    { transactionId: "1", partitionId: batch!.partitionId, status: "completed" },
  ]);
  assert.deepEqual(available, []);
  assert.ok(isAboutAMinute(delayed?.[0]?.delayMs), "somebody is woken when it has matured");
  await holder.unsafe("commit");
  holder.release();
  assert.equal((await pop(fixture)).batch, undefined);
  assert.equal(await readyCount(fixture), 0);
  await pass(fixture, 60, "2");
  assert.deepEqual(idsOf(await pop(fixture)), ["2"]);
});
