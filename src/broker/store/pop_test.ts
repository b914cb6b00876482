import assert from "node:assert/strict";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { PopQuery, PopResult } from "./store.ts";

const open = useTestStores();

function pop({ store }: TestStore, changes: Partial<PopQuery> = {}): Promise<PopResult> {
  return store.pop(TENANT, { queue: "orders", batch: 100, autoAck: false, ...changes });
}

function idsOf({ batch }: PopResult): string[] | undefined {
  return batch?.messages.map((message) => message.transactionId);
}

/** Makes every lease run out, as time would. */
async function expireLeases({ sql, schema }: TestStore): Promise<void> {
  await sql.unsafe(
    `update ${schema}.cursor set lease_expires_at = lease_expires_at - interval '1 day',
      ready_at = ready_at - interval '1 day' where lease_id is not null`,
  );
}

Deno.test("a pop of a queue that does not exist makes it and finds nothing", async () => {
  await using fixture = await open();
  const nothing = { batch: undefined, more: undefined };
  assert.deepEqual(await pop(fixture), nothing);
  assert.deepEqual(await pop(fixture, { partition: "none" }), nothing);
  const { options } = await fixture.store.configure(TENANT, { queue: "orders" });
  assert.equal(options["leaseTime"], 60);
});

Deno.test("a popped batch says what was pushed and when", async () => {
  await using fixture = await open();
  const item = testItem("1", { partition: "p" });
  await fixture.store.push(TENANT, [item]);
  const { batch } = await pop(fixture);
  assert.equal(batch?.partition, "p");
  const [message] = batch!.messages;
  assert.equal(message?.id, item.messageId);
  assert.match(message!.createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  const [row] = await fixture.sql.unsafe(
    `select created_at = $1::text::timestamptz as same from ${fixture.schema}.message`,
    [message!.createdAt],
  );
  assert.equal(row!["same"], true);
});

Deno.test("a leased partition gives nothing to others, and the rest of it after the lease", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.push(TENANT, ["1", "2", "3"].map((id) => testItem(id)));
  const first = await pop(fixture, { batch: 2 });
  assert.deepEqual(idsOf(first), ["1", "2"]);
  await store.push(TENANT, [testItem("4")]);
  assert.equal((await pop(fixture)).batch, undefined);
  assert.equal((await pop(fixture, { partition: "Default" })).batch, undefined);

  await expireLeases(fixture);
  const second = await pop(fixture, { batch: 3 });
  assert.deepEqual(idsOf(second), ["1", "2", "3"]);
  assert.notEqual(second.batch?.leaseId, first.batch?.leaseId);
});

Deno.test("a lease lasts as long as the pop says, and else as long as the queue says", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.configure(TENANT, { queue: "orders", options: { leaseTime: 700 } });
  await store.push(TENANT, [
    testItem("1", { partition: "a" }),
    testItem("1", { partition: "b" }),
  ]);
  await pop(fixture, { partition: "a" });
  await pop(fixture, { partition: "b", leaseSeconds: 5 });
  const rows = await sql.unsafe(
    `select extract(epoch from lease_expires_at - now()) as s from ${schema}.cursor order by 1`,
  );
  const [short, long] = rows.map((row) => Number(row["s"]));
  assert.ok(short! > 0 && short! <= 5, `${short}`);
  assert.ok(long! > 600 && long! <= 700, `${long}`);
});

Deno.test("a pop of one partition takes from no other", async () => {
  await using fixture = await open();
  await fixture.store.push(TENANT, [
    testItem("a", { partition: "a" }),
    testItem("b", { partition: "b" }),
  ]);
  const taken = await pop(fixture, { partition: "b" });
  assert.deepEqual(idsOf(taken), ["b"]);
  assert.equal(taken.more, undefined);
  assert.equal((await pop(fixture, { partition: "b" })).batch, undefined);
  assert.deepEqual(idsOf(await pop(fixture)), ["a"]);
});

Deno.test("more names another partition that could have been taken, if there is one", async () => {
  await using fixture = await open();
  await fixture.store.push(TENANT, [
    testItem("a", { partition: "a" }),
    testItem("b", { partition: "b" }),
  ]);
  const first = await pop(fixture);
  const other = first.batch?.partition === "a" ? "b" : "a";
  assert.deepEqual(first.more, { queue: "orders", partition: other });
  const second = await pop(fixture);
  assert.equal(second.batch?.partition, other);
  assert.equal(second.more, undefined);
});

Deno.test("what was ready first is taken first", async () => {
  await using fixture = await open();
  for (const partition of ["c", "a", "b"]) {
    await fixture.store.push(TENANT, [testItem(partition, { partition })]);
  }
  const order = [await pop(fixture), await pop(fixture), await pop(fixture)].map(idsOf);
  assert.deepEqual(order, [["c"], ["a"], ["b"]]);
});

Deno.test("a hundred pops at once on a hundred ready partitions get one each", async () => {
  await using fixture = await open({ poolSize: 30 });
  const names = Array.from({ length: 100 }, (_, index) => `p${index}`);
  await fixture.store.push(TENANT, names.map((partition) => testItem(partition, { partition })));
  const results = await Promise.all(names.map(() => pop(fixture)));
  const taken = results.map(({ batch }) => batch?.partition);
  assert.deepEqual(taken.toSorted(), names.toSorted());
});

Deno.test("a pop with autoAck completes what it gives out", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.push(TENANT, ["1", "2", "3"].map((id) => testItem(id)));
  const first = await pop(fixture, { autoAck: true, batch: 2 });
  assert.deepEqual(idsOf(first), ["1", "2"]);
  assert.equal("leaseId" in first.batch!, false);
  assert.deepEqual(first.left, [{ queue: "orders", partition: "Default" }]);
  assert.equal(first.more, undefined);
  const second = await pop(fixture, { autoAck: true, batch: 2 });
  assert.deepEqual(idsOf(second), ["3"]);
  assert.equal(second.left, undefined);
  const ready = await sql.unsafe(`select from ${schema}.cursor where ready_at is not null`);
  assert.equal(ready.length, 0);
});

Deno.test("a batch stops at the bytes asked for, but not before its first message", async () => {
  await using fixture = await open();
  const items = ["1", "2", "3"].map((id) => testItem(id, { payload: `"${"x".repeat(98)}"` }));
  await fixture.store.push(TENANT, items);
  assert.deepEqual(idsOf(await pop(fixture, { autoAck: true, bytesMax: 1 })), ["1"]);
  assert.deepEqual(idsOf(await pop(fixture, { bytesMax: 199 })), ["2"]);
  await expireLeases(fixture);
  assert.deepEqual(idsOf(await pop(fixture, { bytesMax: 200 })), ["2", "3"]);
});

Deno.test("a batch given back is there again at once, and no try is charged", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const options = { retryLimit: 0, retryDelay: 60_000 };
  await store.configure(TENANT, { queue: "orders", options });
  await store.push(TENANT, ["1", "2"].map((id) => testItem(id)));
  const first = await pop(fixture, { batch: 1 });
  const leaseId = first.batch!.leaseId!;
  assert.deepEqual(await store.giveBack(TENANT, leaseId), {
    queue: "orders",
    partition: "Default",
  });
  assert.equal(await store.giveBack(TENANT, leaseId), undefined);
  assert.equal(await store.giveBack(TENANT, "no lease"), undefined);
  const [outcome] = (await store.ack(TENANT, [{
    transactionId: "1",
    partitionId: first.batch!.partitionId,
    status: "completed",
  }])).outcomes;
  assert.equal(outcome?.success, false);
  assert.deepEqual(idsOf(await pop(fixture)), ["1", "2"]);
});

Deno.test("a partly acknowledged batch is given back from where it was left", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.push(TENANT, ["1", "2"].map((id) => testItem(id)));
  const { batch } = await pop(fixture);
  await store.ack(TENANT, [
    { transactionId: "1", partitionId: batch!.partitionId, status: "completed" },
  ]);
  assert.ok(await store.giveBack(TENANT, batch!.leaseId!));
  assert.deepEqual(idsOf(await pop(fixture)), ["2"]);
});

Deno.test("two tenants with a queue of the same name see nothing of each other", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const other = "00000000-0000-4000-8000-000000000002";
  await store.push(TENANT, [testItem("mine")]);
  assert.equal(
    (await store.pop(other, { queue: "orders", batch: 1, autoAck: true })).batch,
    undefined,
  );
  const { outcomes } = await store.push(other, [testItem("mine")]);
  assert.equal(outcomes[0]?.status, "queued");

  const { batch } = await pop(fixture);
  const { partitionId, leaseId } = batch!;
  assert.equal(await store.giveBack(other, leaseId!), undefined);
  const ack = { transactionId: "mine", partitionId, leaseId: leaseId!, status: "dlq" } as const;
  const [refused] = (await store.ack(other, [ack])).outcomes;
  assert.equal(refused?.success, false);
  assert.match(refused!.error!, /invalid or expired lease/);
  const [taken] = (await store.ack(TENANT, [ack])).outcomes;
  assert.equal(taken?.success, true);
});

Deno.test("producers and consumers at once lose nothing, and each partition keeps its order", async () => {
  await using fixture = await open({ poolSize: 12 });
  const { store, sql, schema } = fixture;
  const total = 4 * 150;
  // With autoAck a reply can be read after that of the next pop: only their own order is certain.
  const seen = { leased: new Map<string, number[]>(), autoAcked: new Map<string, number[]>() };
  let count = 0;
  const produce = async (producer: number) => {
    for (let n = 0; n < 150; n++) {
      await store.push(TENANT, [testItem(`${producer}:${n}`, { partition: `p${producer % 2}` })]);
    }
  };
  const deadline = AbortSignal.timeout(60_000);
  const consume = async (autoAck: boolean) => {
    while (count < total) {
      if (deadline.aborted) assert.fail(`${count} of ${total} messages after 60 s`);
      const { batch } = await pop(fixture, { batch: 3, autoAck });
      if (!batch) continue;
      for (const { transactionId } of batch.messages) {
        const [producer, n] = transactionId.split(":");
        const numbers = seen[autoAck ? "autoAcked" : "leased"];
        numbers.set(producer!, [...numbers.get(producer!) ?? [], Number(n)]);
      }
      count += batch.messages.length;
      if (autoAck) continue;
      const { partitionId, leaseId } = batch;
      const { outcomes } = await store.ack(
        TENANT,
        batch.messages.map(({ transactionId }) => ({
          transactionId,
          partitionId,
          leaseId: leaseId!,
          status: "completed" as const,
        })),
      );
      assert.ok(outcomes.every(({ success, leaseReleased }) => success && leaseReleased));
    }
  };
  await Promise.all([
    ...[0, 1, 2, 3].map(produce),
    ...[true, false, false].map(consume),
  ]);
  const ascending = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b);
  for (const producer of ["0", "1", "2", "3"]) {
    const leased = seen.leased.get(producer) ?? [];
    const autoAcked = seen.autoAcked.get(producer) ?? [];
    assert.deepEqual(leased, ascending(leased));
    assert.deepEqual(autoAcked, ascending(autoAcked));
    assert.deepEqual(
      ascending([...leased, ...autoAcked]),
      Array.from({ length: 150 }, (_, n) => n),
    );
  }
  const ready = await sql.unsafe(`select from ${schema}.cursor where ready_at is not null`);
  assert.ok(ready.length <= 2);
  assert.equal((await pop(fixture)).batch, undefined);
});
