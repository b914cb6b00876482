import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type postgres from "postgres";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { PushItem } from "./store.ts";

const open = useTestStores();

/** Pushes over a connection of its own, so that the test holds the commit. */
async function pushWithin(sql: postgres.ReservedSql, schema: string, item: PushItem) {
  await sql.unsafe("begin");
  await sql.unsafe(
    `select * from ${schema}.push($1::uuid, array[$2::text], array[$3::text], array[$4::uuid],
      array[$5::text], array[$6::text])`,
    [TENANT, item.queue, item.partition, item.messageId, item.transactionId, item.payload],
  );
}

/** Resolves once that many statements of this schema wait for a lock. */
async function untilLocked({ sql, schema }: TestStore, count = 1): Promise<void> {
  const deadline = AbortSignal.timeout(20_000);
  for (;;) {
    const [row] = await sql.unsafe(
      `select count(*)::int as n from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%${schema}%'`,
    );
    if (row!["n"] >= count) return;
    if (deadline.aborted) assert.fail("nothing waits for a lock");
  }
}

async function drain({ store }: TestStore, queue = "orders"): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const { batch } = await store.pop(TENANT, { queue, batch: 1000, autoAck: true });
    if (!batch) return ids;
    ids.push(...batch.messages.map((message) => message.transactionId));
  }
}

Deno.test("a push stores messages in their order and reports one outcome for each", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const items = ["1", "2", "3"].map((id) => testItem(id));
  const result = await store.push(TENANT, items);
  assert.deepEqual(result, {
    outcomes: items.map(({ messageId }) => ({ status: "queued", messageId })),
    touched: [{ queue: "orders", partition: "Default" }],
  });
  assert.deepEqual(await drain(fixture), ["1", "2", "3"]);
  assert.deepEqual(await store.push(TENANT, []), { outcomes: [], touched: [] });
});

Deno.test("one push may go to many queues and partitions", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const items = Array.from(
    { length: 60 },
    (_, index) => testItem(String(index), { queue: `q${index % 2}`, partition: `p${index % 3}` }),
  );
  const { outcomes, touched } = await store.push(TENANT, items);
  assert.deepEqual(outcomes.map(({ messageId }) => messageId), items.map((i) => i.messageId));
  assert.equal(new Set(touched.map((name) => JSON.stringify(name))).size, 6);
  assert.equal(touched.length, 6);
  const got = await drain(fixture, "q1");
  assert.deepEqual(
    got.toSorted(),
    items.filter((i) => i.queue === "q1").map((i) => i.transactionId)
      .toSorted(),
  );
});

Deno.test("a payload comes back as the same text", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const payloads = [
    `{"b":1,  "a":[1e400, 12345678901234567890, 0.10],"b":2}`,
    String.raw`"\u0000 \ud800 \"quoted\" \\ {NULL}"`,
    `"𝄞 ü \t"`,
    "null",
    `"${"x".repeat(300_000)}"`,
  ];
  await store.push(TENANT, payloads.map((payload, index) => testItem(`${index}`, { payload })));
  const { batch } = await store.pop(TENANT, { queue: "orders", batch: 10, autoAck: true });
  assert.deepEqual(batch?.messages.map((message) => message.payload), payloads);
});

Deno.test("hostile names are names like any other", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const names = [
    `'; drop table message; --`,
    `"`,
    `\\`,
    `{NULL}`,
    "NULL",
    `a",b\nc\r\t`,
    "𝄞".repeat(128),
    "%_$1",
    " ",
  ];
  for (const name of names) {
    const { touched } = await store.push(TENANT, [
      testItem(name, { queue: name, partition: name }),
    ]);
    assert.deepEqual(touched, [{ queue: name, partition: name }]);
    const query = { queue: name, partition: name, batch: 1, autoAck: false };
    const { batch } = await store.pop(TENANT, query);
    assert.equal(batch?.partition, name);
    const [message] = batch!.messages;
    assert.equal(message?.transactionId, name);
    const { outcomes } = await store.ack(TENANT, [
      { partitionId: batch!.partitionId, transactionId: name, status: "completed", error: name },
    ]);
    assert.equal(outcomes[0]?.success, true);
  }
  const refused = store.push(TENANT, [testItem("a\0b")]);
  await assert.rejects(refused, { code: "22021" });
});

Deno.test("a transactionId within the window is a duplicate of the first", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  const first = testItem("same");
  const push = async (item: PushItem) => (await store.push(TENANT, [item])).outcomes[0];
  await push(first);
  const duplicate = { status: "duplicate", messageId: first.messageId };
  assert.deepEqual(await push(testItem("same")), duplicate);
  assert.equal((await push(testItem("same", { partition: "other" })))?.status, "queued");

  const { outcomes, touched } = await store.push(TENANT, [testItem("same"), testItem("same")]);
  assert.deepEqual(outcomes, [duplicate, duplicate]);
  assert.deepEqual(touched, []);

  await sql.unsafe(`update ${schema}.message set created_at = created_at - interval '3601 s'`);
  const again = testItem("same");
  assert.deepEqual(await push(again), { status: "queued", messageId: again.messageId });
  assert.equal((await push(testItem("same")))?.messageId, again.messageId);
});

Deno.test("of equal transactionIds in one push only the first is stored", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const items = [testItem("a"), testItem("b"), testItem("a"), testItem("a")];
  const { outcomes } = await store.push(TENANT, items);
  const [first] = items;
  assert.deepEqual(outcomes.map(({ status }) => status), [
    "queued",
    "queued",
    "duplicate",
    "duplicate",
  ]);
  assert.deepEqual(outcomes[3], { status: "duplicate", messageId: first!.messageId });
  assert.deepEqual(await drain(fixture), ["a", "b"]);
});

Deno.test("without a window only a repeated attempt is a duplicate", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.configure(TENANT, { queue: "orders", options: { dedupWindowSeconds: 0 } });
  const item = testItem("same");
  await store.push(TENANT, [item, testItem("same")]);
  const { outcomes } = await store.push(TENANT, [item]);
  assert.deepEqual(outcomes, [{ status: "duplicate", messageId: item.messageId }]);
  assert.deepEqual(await drain(fixture), ["same", "same"]);
});

Deno.test("a queue that takes encrypted messages only stores none in the clear", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.configure(TENANT, { queue: "secret", options: { encryptionEnabled: true } });
  const items = [testItem("1", { queue: "secret" }), testItem("2")];
  const { outcomes, touched } = await store.push(TENANT, items);
  assert.deepEqual(outcomes.map(({ status }) => status), ["failed", "queued"]);
  assert.match(outcomes[0]!.error!, /encryption of the queue "secret" was changed/);
  assert.deepEqual(touched, [{ queue: "orders", partition: "Default" }]);
  assert.deepEqual(await drain(fixture, "secret"), []);
});

Deno.test("a message whose commit is held back is never passed over", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.push(TENANT, [testItem("0")]);
  const holder = await sql.reserve();
  await pushWithin(holder, schema, testItem("1"));
  const second = store.push(TENANT, [testItem("2")]);
  const third = store.push(TENANT, [testItem("3"), testItem("4", { partition: "other" })]);
  await untilLocked(fixture, 2);
  // The later ones are not stored yet: they would have to come after a message that may never be.
  assert.deepEqual(await drain(fixture), ["0"]);
  await holder.unsafe("commit");
  holder.release();
  await Promise.all([second, third]);
  const { batch } = await store.pop(TENANT, {
    queue: "orders",
    partition: "Default",
    batch: 9,
    autoAck: false,
  });
  const ids = batch?.messages.map((message) => message.transactionId);
  assert.equal(ids?.[0], "1");
  assert.deepEqual(ids?.toSorted(), ["1", "2", "3"]);
  const [row] = await sql.unsafe(
    `select array_agg(number::int order by number) as numbers from ${schema}.message
      join ${schema}.partition on partition.id = partition_id where name = 'Default'`,
  );
  assert.deepEqual(row!["numbers"], [1, 2, 3, 4]);
});

Deno.test("a push that an ack meets half-way is found once it is committed", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.push(TENANT, [testItem("1")]);
  const { batch } = await store.pop(TENANT, { queue: "orders", batch: 1, autoAck: false });
  const holder = await sql.reserve();
  await pushWithin(holder, schema, testItem("2"));
  // The batch ends with nothing left to see; the push saw a cursor that was busy. Where it commits and
  // wakes before the ack does, nobody can take it yet: so the ack has to wake too.
  const { outcomes, available } = await store.ack(TENANT, [
    { partitionId: batch!.partitionId, transactionId: "1", status: "completed" },
  ]);
  assert.equal(outcomes[0]?.leaseReleased, true);
  assert.deepEqual(available, [
    { queue: "orders", partition: "Default", consumerGroup: "__QUEUE_MODE__" },
  ]);
  assert.deepEqual(await drain(fixture), []);
  await holder.unsafe("commit");
  holder.release();
  assert.deepEqual(await drain(fixture), ["2"]);
});

Deno.test("a push that is rolled back leaves nothing to look through", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.push(TENANT, [testItem("1")]);
  const { batch } = await store.pop(TENANT, { queue: "orders", batch: 1, autoAck: false });
  const holder = await sql.reserve();
  await pushWithin(holder, schema, testItem("2"));
  await store.ack(TENANT, [
    { partitionId: batch!.partitionId, transactionId: "1", status: "completed" },
  ]);
  assert.deepEqual(await drain(fixture), []);
  const ready = () => sql.unsafe(`select from ${schema}.cursor where ready_at is not null`);
  assert.equal((await ready()).length, 1);
  await holder.unsafe("rollback");
  holder.release();
  assert.deepEqual(await drain(fixture), []);
  assert.equal((await ready()).length, 0);
  await store.push(TENANT, [testItem("3")]);
  assert.deepEqual(await drain(fixture), ["3"]);
});

Deno.test("pushes to the same new queues and partitions in any order do not fail", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const names = Array.from({ length: 6 }, (_, index) => ({
    queue: `q${index % 3}`,
    partition: `p${index}`,
  }));
  const pushes = Array.from({ length: 40 }, (_, index) => {
    const turned = [...names.slice(index % 6), ...names.slice(0, index % 6)];
    if (index % 2) turned.reverse();
    return store.push(TENANT, turned.map((name) => testItem(randomUUID(), name)));
  });
  const results = await Promise.all(pushes);
  assert.ok(results.every(({ outcomes }) => outcomes.every(({ status }) => status === "queued")));
  const drained = await Promise.all(["q0", "q1", "q2"].map((queue) => drain(fixture, queue)));
  assert.equal(drained.flat().length, 240);
});
