import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { DiscoveryFilter, PopQuery, PopResult } from "./store.ts";

const open = useTestStores();

function pop({ store }: TestStore, changes: Partial<PopQuery> = {}): Promise<PopResult> {
  return store.pop(TENANT, { queue: "orders", batch: 100, autoAck: false, ...changes });
}

/** Pushes one message after the other: `["a", "a", "b"]` is two to `a` and one to `b`. */
async function push({ store }: TestStore, ...partitions: string[]): Promise<void> {
  for (const [n, partition] of partitions.entries()) {
    await store.push(TENANT, [testItem(`${partition}${n}`, { partition })]);
  }
}

/** What was taken, by partition. */
function taken({ batch, others = [] }: PopResult): [string, string[]][] {
  const batches = batch === undefined ? others : [batch, ...others];
  return batches.map(({ partition, messages }) => [
    partition,
    messages.map(({ transactionId }) => transactionId),
  ]);
}

Deno.test("one pop claims up to as many partitions as it asks for, each by its own lease", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await push(fixture, "a", "b", "b", "c");
  const first = await pop(fixture, { partitions: 2 });
  assert.deepEqual(taken(first), [["a", ["a0"]], ["b", ["b1", "b2"]]]);
  assert.deepEqual(first.more, { queue: "orders", partition: "c" });
  const leases = [first.batch!, ...first.others!].map(({ leaseId }) => leaseId!);
  assert.equal(new Set(leases).size, 2);
  const { outcomes } = await store.ack(TENANT, [{
    partitionId: first.others![0]!.partitionId,
    leaseId: leases[1]!,
    transactionId: "b2",
    status: "completed",
  }]);
  assert.equal(outcomes[0]?.leaseReleased, true);
  assert.deepEqual(await store.giveBack(TENANT, leases[0]!), { queue: "orders", partition: "a" });
  const second = await pop(fixture, { partitions: 1000 });
  assert.deepEqual(taken(second), [["c", ["c3"]], ["a", ["a0"]]]);
  assert.equal(second.more, undefined);
});

Deno.test("a batch is the bound of all partitions together, and the rest waits for the next", async () => {
  await using fixture = await open();
  await push(fixture, "a", "a", "b", "b", "c");
  const first = await pop(fixture, { partitions: 10, batch: 3 });
  assert.deepEqual(taken(first), [["a", ["a0", "a1"]], ["b", ["b2"]]]);
  assert.deepEqual(first.more, { queue: "orders", partition: "c" });
});

Deno.test("the bytes are the bound of all partitions together, never below one message", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const payload = `"${"x".repeat(98)}"`;
  for (const partition of ["a", "b", "c"]) {
    await store.push(TENANT, [testItem(partition, { partition, payload })]);
  }
  assert.deepEqual(taken(await pop(fixture, { partitions: 3, bytesMax: 1 })), [["a", ["a"]]]);
  const second = await pop(fixture, { partitions: 3, bytesMax: 199 });
  assert.deepEqual(taken(second), [["b", ["b"]]]);
  assert.deepEqual(second.more, { queue: "orders", partition: "c" });
});

Deno.test("with autoAck all that was cut short is named, and another partition beside it", async () => {
  await using fixture = await open();
  await push(fixture, "a", "a", "b");
  const first = await pop(fixture, { autoAck: true, bytesMax: 1 });
  assert.deepEqual(taken(first), [["a", ["a0"]]]);
  assert.deepEqual(first.left, [{ queue: "orders", partition: "a" }]);
  assert.deepEqual(first.more, { queue: "orders", partition: "b" });
  await push(fixture, "c");
  const all = await pop(fixture, { autoAck: true, partitions: 3, batch: 3 });
  assert.deepEqual(all.left, undefined);
  assert.equal(taken(all).length, 3);
});

Deno.test("with autoAck a push that is under way counts as something left", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  await push(fixture, "a");
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(
    `select * from ${schema}.push('${TENANT}', '{orders}', '{a}', '{${randomUUID()}}', '{2}', '{2}')`,
  );
  const first = await pop(fixture, { autoAck: true });
  await holder.unsafe("commit");
  holder.release();
  assert.deepEqual(first.left, [{ queue: "orders", partition: "a" }]);
  assert.deepEqual(taken(await pop(fixture)), [["a", ["2"]]]);
});

Deno.test("candidates are tried first and in their order, and then what else is ready", async () => {
  await using fixture = await open();
  await push(fixture, "a", "b", "c", "d");
  const candidates = ["none", "d", "b"];
  assert.deepEqual(taken(await pop(fixture, { candidates })), [["d", ["d3"]]]);
  assert.deepEqual(taken(await pop(fixture, { candidates, partitions: 2 })), [
    ["b", ["b1"]],
    ["a", ["a0"]],
  ]);
  assert.deepEqual(taken(await pop(fixture, { candidates: ["c", "c"], partitions: 5 })), [
    ["c", ["c2"]],
  ]);
});

Deno.test("a candidate that does not fit any more is named, since nobody else could take it", async () => {
  await using fixture = await open();
  await push(fixture, "a", "b", "c");
  const candidates = ["b", "c"];
  const first = await pop(fixture, { candidates, partitions: 3, bytesMax: 4 });
  assert.deepEqual(taken(first), [["b", ["b1"]]]);
  assert.deepEqual(first.more, { queue: "orders", partition: "c" });
});

Deno.test("a lease is extended from now on and never made shorter", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await push(fixture, "a");
  const { batch } = await pop(fixture, { leaseSeconds: 100 });
  const leaseId = batch!.leaseId!;
  const left = async () => {
    const [row] = await sql.unsafe(
      `select extract(epoch from lease_expires_at - clock_timestamp()) as s,
        ready_at = lease_expires_at as is_ready_then from ${schema}.cursor`,
    );
    assert.equal(row!["is_ready_then"], true);
    return Number(row!["s"]);
  };
  const expiresAt = await store.extendLease(TENANT, leaseId, 500);
  assert.match(expiresAt!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.ok(await left() > 400);
  assert.equal(await store.extendLease(TENANT, leaseId, 1), expiresAt);
  assert.ok(await left() > 400);
});

Deno.test("a lease that is unknown, another tenant's or over is not extended", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await push(fixture, "a");
  const leaseId = (await pop(fixture)).batch!.leaseId!;
  assert.equal(await store.extendLease(TENANT, "no such lease", 60), undefined);
  assert.equal(await store.extendLease(TENANT, randomUUID(), 60), undefined);
  const other = "00000000-0000-4000-8000-000000000002";
  assert.equal(await store.extendLease(other, leaseId, 60), undefined);
  await sql.unsafe(`update ${schema}.cursor set lease_expires_at = clock_timestamp()`);
  assert.equal(await store.extendLease(TENANT, leaseId, 60), undefined);
});

Deno.test("an extension decides under the cursor's lock, by the time that it is then", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await push(fixture, "a");
  const leaseId = (await pop(fixture)).batch!.leaseId!;
  const holder = await sql.reserve();
  await holder.unsafe("begin");
  await holder.unsafe(`update ${schema}.cursor set lease_expires_at = clock_timestamp()`);
  const extending = store.extendLease(TENANT, leaseId, 60);
  const deadline = AbortSignal.timeout(20_000);
  for (let isWaiting = false; !isWaiting;) {
    if (deadline.aborted) assert.fail("the extension does not wait");
    const [row] = await sql.unsafe(
      `select exists (select from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%${schema}%extend_lease%') as waits`,
    );
    isWaiting = row!["waits"];
  }
  await holder.unsafe("commit");
  holder.release();
  assert.equal(await extending, undefined);
});

Deno.test("queues are discovered by namespace, by task and by both, within the tenant", async () => {
  await using fixture = await open();
  const { store } = fixture;
  for (const [queue, namespace, task] of [["1", "n", "t"], ["2", "n", "u"], ["3", "m", "t"]]) {
    await store.configure(TENANT, { queue: queue!, namespace: namespace!, task: task! });
  }
  await store.configure("00000000-0000-4000-8000-000000000002", { queue: "4", namespace: "n" });
  const names = async (filter: DiscoveryFilter) =>
    (await store.discover(TENANT, filter)).map(({ queue }) => queue);
  assert.deepEqual(await names({ namespace: "n" }), ["1", "2"]);
  assert.deepEqual(await names({ task: "t" }), ["1", "3"]);
  assert.deepEqual(await names({ namespace: "n", task: "t" }), ["1"]);
  assert.deepEqual(await names({ namespace: "x" }), []);
});

Deno.test("discovery says where a pop is worth it, longest waiting first", async () => {
  await using fixture = await open();
  const { store } = fixture;
  for (const queue of ["1", "2", "3"]) await store.configure(TENANT, { queue, namespace: "n" });
  for (const queue of ["3", "2"]) await store.push(TENANT, [testItem("x", { queue })]);
  const found = await store.discover(TENANT, { namespace: "n" });
  assert.deepEqual(found, [
    { queue: "3", isWorthAPop: true },
    { queue: "2", isWorthAPop: true },
    { queue: "1", isWorthAPop: false },
  ]);
  const filter = { namespace: "n", consumerGroup: "g" };
  const unknown = await store.discover(TENANT, filter);
  assert.ok(unknown.every(({ isWorthAPop }) => isWorthAPop), "the group has to be recorded");
  for (const { queue } of unknown) {
    await store.pop(TENANT, { queue, batch: 1, autoAck: true, consumerGroup: "g" });
  }
  const known = await store.discover(TENANT, filter);
  assert.ok(known.every(({ isWorthAPop }) => !isWorthAPop), "nothing is there for a new group");
});
