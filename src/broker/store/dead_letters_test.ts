import assert from "node:assert/strict";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { DeadLetterQuery } from "./store.ts";

const open = useTestStores();

/** Dead-letters messages one after the other: `[partition, transactionId]`. */
async function bury(
  { store }: TestStore,
  letters: readonly (readonly [string, string])[],
  payload?: string,
): Promise<void> {
  for (const [partition, transactionId] of letters) {
    const item = testItem(transactionId, {
      partition,
      ...(payload === undefined ? {} : { payload }),
    });
    await store.push(TENANT, [item]);
    const { batch } = await store.pop(TENANT, {
      queue: "orders",
      partition,
      batch: 1,
      autoAck: false,
    });
    const { partitionId } = batch!;
    await store.ack(TENANT, [{ transactionId, partitionId, status: "dlq", error: "no good" }]);
  }
}

async function find({ store }: TestStore, changes: Partial<DeadLetterQuery> = {}) {
  const page = await store.deadLetters(TENANT, {
    queue: "orders",
    limit: 100,
    offset: 0,
    ...changes,
  });
  return page && {
    total: page.total,
    ids: page.messages.map(({ transactionId }) => transactionId),
    messages: page.messages,
  };
}

Deno.test("a dead letter tells all of its message", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.configure(TENANT, { queue: "orders", options: { retryDelay: 0, retryLimit: 1 } });
  const payload = String.raw`{"big":12345678901234567890,"nul":"\u0000"}`;
  await store.push(TENANT, [testItem("t", { partition: "p", payload })]);
  let partitionId = "";
  for (const error of ["first", "second"]) {
    const { batch } = await store.pop(TENANT, { queue: "orders", batch: 1, autoAck: false });
    partitionId = batch!.partitionId;
    await store.ack(TENANT, [{ transactionId: "t", partitionId, status: "failed", error }]);
  }
  const [message] = (await find(fixture))!.messages;
  const [row] = await sql.unsafe(
    `select message_id, to_json(created_at at time zone 'UTC') #>> '{}' as created,
      to_json(failed_at at time zone 'UTC') #>> '{}' as failed from ${schema}.dead_letter`,
  );
  assert.equal(Date.parse(message!.createdAt), Date.parse(`${row!["created"]}Z`));
  assert.equal(Date.parse(message!.failedAt), Date.parse(`${row!["failed"]}Z`));
  assert.deepEqual(message, {
    id: row!["message_id"],
    transactionId: "t",
    partitionId,
    partition: "p",
    consumerGroup: "__QUEUE_MODE__",
    payload,
    encrypted: false,
    error: "second",
    retryCount: 1,
    createdAt: message!.createdAt,
    failedAt: message!.failedAt,
  });
});

Deno.test("dead letters come latest first, and in pages", async () => {
  await using fixture = await open();
  await bury(fixture, [["a", "1"], ["b", "2"], ["a", "3"], ["c", "4"]]);
  assert.deepEqual((await find(fixture))?.ids, ["4", "3", "2", "1"]);
  const second = await find(fixture, { limit: 2, offset: 1 });
  assert.deepEqual([second?.ids, second?.total], [["3", "2"], 4]);
  const beyond = await find(fixture, { offset: 9 });
  assert.deepEqual([beyond?.ids, beyond?.total], [[], 4]);
  assert.deepEqual((await find(fixture, { limit: 0 }))?.total, 4);
});

Deno.test("dead letters are found by partition, by group and by time", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  await bury(fixture, [["a", "1"], ["b", "2"], ["a", "3"]]);
  for (const [i, id] of ["1", "2", "3"].entries()) {
    await sql.unsafe(
      `update ${schema}.dead_letter set failed_at = '2026-01-0${i + 1}T00:00:00Z'
        where transaction_id = '${id}'`,
    );
  }
  await sql.unsafe(
    `update ${schema}.dead_letter set consumer_group = 'g' where transaction_id = '2'`,
  );
  const ids = async (changes: Partial<DeadLetterQuery>) => (await find(fixture, changes))?.ids;
  assert.deepEqual(await ids({ partition: "a" }), ["3", "1"]);
  assert.deepEqual(await ids({ partition: "z" }), []);
  assert.deepEqual(await ids({ consumerGroup: "g" }), ["2"]);
  assert.deepEqual(await ids({ consumerGroup: "__QUEUE_MODE__" }), ["3", "1"]);
  assert.deepEqual(await ids({ from: "2026-01-02T00:00:00Z" }), ["3", "2"]);
  assert.deepEqual(await ids({ to: "2026-01-02T00:00:00Z" }), ["2", "1"]);
  assert.deepEqual(
    await ids({ from: "2026-01-02T01:00:00+01:00", to: "2026-01-02T00:00:00Z" }),
    ["2"],
  );
});

Deno.test("a page stops at so many bytes, but not below one message", async () => {
  await using fixture = await open();
  await bury(fixture, [["a", "1"], ["a", "2"], ["a", "3"]], JSON.stringify("x".repeat(98)));
  const sizes = async (bytesMax: number) => (await find(fixture, { bytesMax }))?.ids.length;
  assert.deepEqual([await sizes(1), await sizes(199), await sizes(200), await sizes(1e6)], [
    1,
    1,
    2,
    3,
  ]);
  const second = await find(fixture, { bytesMax: 1, offset: 1 });
  assert.deepEqual([second?.ids, second?.total], [["2"], 3]);
});

Deno.test("the dead letters of a queue that is not there, or another tenant's, are unknown", async () => {
  await using fixture = await open();
  await bury(fixture, [["a", "1"]]);
  assert.equal(await find(fixture, { queue: "other" }), undefined);
  const query = { queue: "orders", limit: 1, offset: 0 };
  const foreign = await fixture.store.deadLetters("00000000-0000-4000-8000-000000000002", query);
  assert.equal(foreign, undefined);
  await fixture.store.push(TENANT, [testItem("1", { queue: "empty" })]);
  assert.deepEqual((await find(fixture, { queue: "empty" }))?.messages, []);
});
