import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { useTestStores } from "../testing/test_store.ts";
import { Api } from "./testing/api.ts";
import type { Reply } from "./testing/http_bench.ts";

const open = useTestStores();

/** A replica on a store of its own. Nobody polls: only a wake answers a pop that waits. */
async function start(): Promise<Api> {
  return await Api.start(await open());
}

/** Resolves once `isTrue` does to true. */
async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = AbortSignal.timeout(20_000);
  while (!await isTrue()) {
    if (deadline.aborted) assert.fail(`${what}: not in time`);
    // Nothing in this process may keep it from its sockets.
    await delay(5);
  }
}

function push(api: Api, queue: string, partition: string, ...payloads: unknown[]): Promise<Reply> {
  const items = payloads.map((payload) => ({
    queue,
    partition,
    payload,
    transactionId: String(payload).slice(0, 9),
  }));
  return api.call("/api/v1/push", { items });
}

function configure(api: Api, queue: string, settings: Record<string, unknown>): Promise<Reply> {
  return api.call("/api/v1/configure", { queue, ...settings });
}

function dataOf({ status, body }: Reply): unknown[] {
  if (status === 204) return [];
  assert.equal(status, 200);
  return body.messages.map((message: { data: unknown }) => message.data);
}

/** Parks a pop. */
async function park(api: Api, path: string): Promise<Promise<Reply>[]> {
  const { parked } = await api.waker();
  const reply = api.call(`${path}wait=true`);
  await api.untilParked(parked! + 1);
  return [reply];
}

Deno.test("two groups and queue mode each get a message, in replies that name them", async () => {
  await using api = await start();
  for (const group of ["a", "b"]) {
    const first = await api.call(`/api/v1/pop/queue/q?consumerGroup=${group}`);
    assert.equal(first.status, 204);
  }
  await push(api, "q", "p", 1);
  for (const group of ["a", "b", "__QUEUE_MODE__"]) {
    const reply = await api.call(`/api/v1/pop/queue/q?consumerGroup=${group}`);
    assert.deepEqual(dataOf(reply), [1]);
    const { consumerGroup, messages, partitionId, leaseId } = reply.body;
    assert.deepEqual([consumerGroup, messages[0].consumerGroup], [group, group]);
    const ack = { transactionId: "1", partitionId, leaseId };
    const [wrong] = (await api.call("/api/v1/ack", { ...ack, consumerGroup: "other" })).body;
    assert.equal(wrong.success, false);
    const [right] = (await api.call("/api/v1/ack", { ...ack, consumerGroup: group })).body;
    assert.deepEqual([right.success, right.leaseReleased], [true, true]);
  }
});

Deno.test("subscriptionMode and subscriptionFrom say where a group starts", async () => {
  await using api = await start();
  await push(api, "q", "p", 1);
  const pop = async (query: string) =>
    dataOf(await api.call(`/api/v1/pop/queue/q?autoAck=true&${query}`));
  assert.deepEqual(await pop("consumerGroup=default"), []);
  assert.deepEqual(await pop("consumerGroup=new&subscriptionMode=new"), []);
  assert.deepEqual(await pop("consumerGroup=all&subscriptionMode=all"), [1]);
  assert.deepEqual(await pop("consumerGroup=now&subscriptionMode=all&subscriptionFrom=now"), []);
  for (
    const [i, from] of [
      "2020-01-01",
      "2020-01-01T00:00:00Z",
      "2020-01-01T00:00:00.123456789+01:00",
      "2020-01-01T00:00:00%2B01:00",
      "2020-01-01 00:00",
    ].entries()
  ) {
    assert.deepEqual(await pop(`consumerGroup=from${i}&subscriptionFrom=${from}`), [1], from);
  }
  assert.deepEqual(await pop("consumerGroup=late&subscriptionFrom=2999-01-01T00:00:00Z"), []);
  assert.deepEqual(await pop("subscriptionMode=new"), [1], "queue mode is always all");
});

Deno.test("where no pop says it, a group starts as the replica is set up", async () => {
  const config = { defaultSubscriptionMode: "all" } as const;
  await using api = await Api.start(await open(), { config });
  await push(api, "q", "p", 1);
  assert.deepEqual(dataOf(await api.call("/api/v1/pop/queue/q?consumerGroup=a")), [1]);
  const path = "/api/v1/pop/queue/q?consumerGroup=b&subscriptionMode=new";
  assert.deepEqual(dataOf(await api.call(path)), []);
});

Deno.test("a partition made while a new group is parked is seen from its first message", async () => {
  await using api = await start();
  await push(api, "q", "old", "old");
  const [reply] = await park(api, "/api/v1/pop/queue/q?consumerGroup=g&");
  await push(api, "q", "made later", 1, 2);
  const { body } = await reply!;
  assert.equal(body.partition, "made later");
  assert.deepEqual(dataOf(await reply!), [1, 2]);
});

Deno.test("a push wakes one pop of each group, and that of one partition too", async () => {
  await using api = await start();
  const replies = [
    ...await park(api, "/api/v1/pop/queue/q?consumerGroup=a&"),
    ...await park(api, "/api/v1/pop/queue/q/partition/p?consumerGroup=b&"),
    ...await park(api, "/api/v1/pop/queue/q?"),
  ];
  const [other] = await park(api, "/api/v1/pop/queue/q/partition/other?consumerGroup=b&");
  await push(api, "q", "p", 1);
  assert.deepEqual((await Promise.all(replies)).map(dataOf), [[1], [1], [1]]);
  await push(api, "q", "other", 2);
  assert.deepEqual(dataOf(await other!), [2]);
});

Deno.test("an ack of a group that leaves messages wakes that group", async () => {
  await using api = await start();
  await api.call("/api/v1/pop/queue/q?consumerGroup=g");
  await push(api, "q", "p", 1, 2);
  const { body } = await api.call("/api/v1/pop/queue/q?consumerGroup=g&batch=1");
  const [reply] = await park(api, "/api/v1/pop/queue/q?consumerGroup=g&");
  const { partitionId, leaseId } = body;
  const ack = { transactionId: "1", partitionId, leaseId, consumerGroup: "g" };
  await api.call("/api/v1/ack", ack);
  assert.deepEqual(dataOf(await reply!), [2]);
});

Deno.test("of one completed, one failed and one completed, the last two come again", async () => {
  await using api = await start();
  await configure(api, "q", { options: { retryDelay: 100 } });
  await push(api, "q", "p", 1, 2, 3);
  const path = "/api/v1/pop/queue/q?consumerGroup=g&subscriptionMode=all";
  const { partitionId, leaseId } = (await api.call(path)).body;
  await push(api, "q", "p", 4);
  const acknowledgments = ["completed", "failed", "completed"].map((status, i) => ({
    transactionId: String(i + 1),
    partitionId,
    leaseId,
    status,
  }));
  await api.call("/api/v1/ack/batch", { consumerGroup: "g", acknowledgments });
  // Nothing is delivered past what waits to be retried.
  assert.deepEqual(dataOf(await api.call(`${path}&wait=true`)), [2, 3, 4]);
});

Deno.test("one pop takes several partitions, and each message says where it is from", async () => {
  await using api = await start();
  for (const partition of ["a", "b", "c"]) await push(api, "q", partition, partition);
  const { body } = await api.call("/api/v1/pop/queue/q?partitions=2");
  assert.equal(body.partitionsClaimed, 2);
  assert.deepEqual([body.partition, body.messages.length], ["a", 2]);
  assert.equal(body.leaseId, body.messages[0].leaseId);
  const acknowledgments = body.messages.map((
    { transactionId, partitionId, leaseId }: Record<string, string>,
  ) => ({ transactionId, partitionId, leaseId }));
  const acked = (await api.call("/api/v1/ack/batch", { acknowledgments })).body;
  assert.ok(acked.every((each: { success: boolean }) => each.success));
  const rest = await api.call("/api/v1/pop/queue/q?partitions=2");
  assert.deepEqual([rest.body.partition, rest.body.partitionsClaimed], ["c", 1]);
});

Deno.test("a reply of several partitions stops at the greatest body", async () => {
  await using api = await start();
  for (const partition of ["a", "b", "c"]) await push(api, "q", partition, "x".repeat(30_000));
  const { text, body } = await api.call("/api/v1/pop/queue/q?partitions=3");
  assert.ok(text.length <= 100_000);
  assert.equal(body.partitionsClaimed, 1);
});

Deno.test("a pop by namespace or task finds a message in any queue that matches", async () => {
  await using api = await start();
  await configure(api, "q1", { namespace: "n", task: "t" });
  await configure(api, "q2", { namespace: "n", task: "u" });
  await push(api, "q2", "p", 2);
  const pop = (query: string) => api.call(`/api/v1/pop?autoAck=true&${query}`);
  assert.equal((await pop("namespace=n&task=t")).status, 204);
  assert.equal((await pop("namespace=m")).status, 204);
  const { body } = await pop("namespace=n");
  assert.deepEqual([body.queue, body.partition, body.messages[0].data], ["q2", "p", 2]);
  await push(api, "q1", "p", 1);
  assert.equal((await pop("task=u")).status, 204);
  assert.equal((await pop("task=t")).body.queue, "q1");
});

Deno.test("a push to a queue that matches wakes a pop that waits by namespace, and no other", async () => {
  await using api = await start();
  await configure(api, "q1", { namespace: "n" });
  await configure(api, "q2", { namespace: "m" });
  const [reply] = await park(api, "/api/v1/pop?namespace=n&");
  const [other] = await park(api, "/api/v1/pop?namespace=m&task=&");
  await push(api, "q1", "p", 1);
  assert.equal((await reply!).body.queue, "q1");
  assert.deepEqual((await api.waker())["parked"], 1);
  await push(api, "q2", "p", 2);
  assert.equal((await other!).body.queue, "q2");
  assert.equal((await api.waker())["poll_queries"], 0);
});

Deno.test("a queue that is configured while a pop waits by namespace is found at once", async () => {
  await using api = await start();
  await push(api, "q", "p", 1);
  const [reply] = await park(api, "/api/v1/pop?namespace=n&");
  await configure(api, "q", { namespace: "n" });
  assert.deepEqual(dataOf(await reply!), [1]);
  const [second] = await park(api, "/api/v1/pop?namespace=n&autoAck=true&");
  await configure(api, "q2", { namespace: "n" });
  await push(api, "q2", "p", 2);
  assert.deepEqual(dataOf(await second!), [2]);
});

Deno.test("a new group that waits by namespace gets a later queue from its first message", async () => {
  await using api = await start();
  await configure(api, "old", { namespace: "n" });
  await push(api, "old", "p", "old");
  const [reply] = await park(api, "/api/v1/pop?namespace=n&consumerGroup=g&");
  await push(api, "q", "p", 1);
  await configure(api, "q", { namespace: "n" });
  assert.deepEqual(dataOf(await reply!), [1]);
});

Deno.test("a delayed message reaches a pop that waits as soon as it has matured", async () => {
  await using api = await start();
  await configure(api, "q", { options: { delayedProcessing: 1 } });
  const [reply] = await park(api, "/api/v1/pop/queue/q?");
  await push(api, "q", "p", 1);
  assert.equal((await api.call("/api/v1/pop/queue/q")).status, 204);
  assert.deepEqual(dataOf(await reply!), [1]);
  assert.equal((await api.waker())["poll_queries"], 0);
});

Deno.test("a window's messages reach a pop that waits together, after the first one's time", async () => {
  await using api = await start();
  await configure(api, "q", { options: { windowBuffer: 1 } });
  const [reply] = await park(api, "/api/v1/pop/queue/q?autoAck=true&");
  await push(api, "q", "p", 1);
  await push(api, "q", "p", 2);
  assert.deepEqual(dataOf(await reply!), [1, 2]);
  const [full] = await park(api, "/api/v1/pop/queue/q?autoAck=true&");
  await push(api, "q", "p", ...Array.from({ length: 100 }, (_, n) => n + 10));
  assert.equal(dataOf(await full!)[0], 10);
});

Deno.test("a lease is extended, and one that is unknown or over is not", async () => {
  await using api = await start();
  await push(api, "q", "p", 1);
  const { leaseId, partitionId } = (await api.call("/api/v1/pop/queue/q")).body;
  const path = `/api/v1/lease/${leaseId}/extend`;
  const { status, body } = await api.call(path, { seconds: 500 });
  assert.equal(status, 200);
  const { newExpiresAt: time } = body;
  assert.ok(Date.parse(time) - Date.now() > 400_000, time);
  const reply = { leaseId, success: true, renewed: true };
  const times = { newExpiresAt: time, expiresAt: time, lease_expires_at: time };
  assert.deepEqual(body, { ...reply, ...times });
  assert.equal((await api.call(path, "")).body.success, true, "a body is not needed");
  await api.call("/api/v1/ack", { transactionId: "1", partitionId, leaseId });
  const nothing = { success: false, renewed: false };
  const noTimes = { newExpiresAt: null, expiresAt: null, lease_expires_at: null };
  for (const id of [leaseId, "unknown", "%2F"]) {
    const late = await api.call(`/api/v1/lease/${id}/extend`, {});
    assert.deepEqual(late.body, { leaseId: decodeURIComponent(id), ...nothing, ...noTimes });
  }
});

Deno.test("a push that commits and wakes just before an ack does is not lost", async () => {
  const opened = await open();
  await using api = await Api.start(opened);
  const { sql, schema } = opened;
  for (const partition of ["a", "b"]) await push(api, "q", partition, partition);
  const { messages } = (await api.call("/api/v1/pop/queue/q?partitions=2")).body;
  // An ack of both takes their cursors in this order.
  messages.sort((a: { partitionId: string }, b: { partitionId: string }) =>
    a.partitionId < b.partitionId ? -1 : 1
  );
  const [first, second] = messages;
  const [pushing, holder] = await Promise.all([sql.reserve(), sql.reserve()]);
  await pushing.unsafe("begin");
  await pushing.unsafe(
    `select * from ${schema}.push('00000000-0000-0000-0000-000000000001', '{q}', $1::text[],
      array[gen_random_uuid()], '{2}', '{2}')`,
    [[first.partition]],
  );
  await holder.unsafe("begin");
  await holder.unsafe(`select from ${schema}.cursor where partition_id = $1::uuid for update`, [
    second.partitionId,
  ]);
  const acknowledgments = messages.map((
    { transactionId, partitionId }: Record<string, string>,
  ) => ({
    transactionId,
    partitionId,
  }));
  const acking = api.call("/api/v1/ack/batch", { acknowledgments });
  // The ack has met the push half-way, and waits for the other cursor.
  await until("the ack waits", async () => {
    const [row] = await sql.unsafe(
      `select exists (select from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%${schema}%ack%') as waits`,
    );
    return row!["waits"];
  });
  const [reply] = await park(api, "/api/v1/pop/queue/q?");
  const { wake_queries } = await api.waker();
  await pushing.unsafe("commit");
  pushing.release();
  await api.call("/internal/api/notify", { queue: "q", partition: first.partition });
  // The wake of the push finds a cursor that the ack still holds.
  await until("the wake is spent", async () => {
    const counts = await api.waker();
    return counts["wake_queries"]! > wake_queries! && counts["parked"] === 1;
  });
  await holder.unsafe("commit");
  holder.release();
  assert.equal((await acking).body.length, 2);
  assert.deepEqual(dataOf(await reply!), [2]);
  assert.equal((await api.waker())["poll_queries"], 0);
});
