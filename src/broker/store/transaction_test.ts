import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { Ack, TransactionRequest, TransactionResult } from "./store.ts";

const open = useTestStores();

const NOTHING: TransactionRequest = { items: [], acks: [], requiredLeases: [] };
const NOT_HELD = "a required lease is not held or has run out";

function run(
  { store }: TestStore,
  request: Partial<TransactionRequest>,
): Promise<TransactionResult> {
  return store.transaction(TENANT, { ...NOTHING, ...request });
}

async function pop({ store }: TestStore, queue: string, leaseSeconds = 60) {
  return (await store.pop(TENANT, { queue, batch: 10, autoAck: false, leaseSeconds })).batch;
}

/** Pushes one message to "orders" and leases it; returns the ack that completes it. */
async function lease(fixture: TestStore, leaseSeconds = 60): Promise<Ack & { leaseId: string }> {
  await fixture.store.push(TENANT, [testItem("in")]);
  const batch = await pop(fixture, "orders", leaseSeconds);
  const { partitionId, leaseId } = batch!;
  return { transactionId: "in", partitionId, leaseId: leaseId!, status: "completed" };
}

async function count({ sql, schema }: TestStore): Promise<number> {
  const [row] = await sql.unsafe(`select count(*)::integer as count from ${schema}.message`);
  return row!["count"];
}

const out = (transactionId: string) => testItem(transactionId, { queue: "out" });

Deno.test("a transaction pushes and acknowledges, and says what can be taken", async () => {
  await using fixture = await open();
  const ack = await lease(fixture);
  await fixture.store.push(TENANT, [testItem("next")]);
  const [a, b] = [out("a"), out("b")];
  const result = await run(fixture, {
    items: [a, b],
    acks: [ack],
    requiredLeases: [ack.leaseId],
  });
  assert.equal(result.isCommitted, true);
  assert.deepEqual(result.pushed?.outcomes, [
    { status: "queued", messageId: a.messageId },
    { status: "queued", messageId: b.messageId },
  ]);
  assert.deepEqual(result.pushed?.touched, [{ queue: "out", partition: "Default" }]);
  assert.deepEqual(result.acked?.outcomes, [
    { success: true, leaseReleased: true, dlq: false, noop: false },
  ]);
  assert.deepEqual(result.acked?.available.map(({ queue }) => queue), ["orders"]);
  assert.deepEqual((await pop(fixture, "out"))?.messages.map((m) => m.transactionId), ["a", "b"]);
  assert.deepEqual((await pop(fixture, "orders"))?.messages.map((m) => m.transactionId), ["next"]);
});

Deno.test("where one ack fails, nothing is pushed and no cursor moves", async () => {
  await using fixture = await open();
  const ack = await lease(fixture);
  const wrong = { ...ack, leaseId: randomUUID() };
  const result = await run(fixture, { items: [out("a")], acks: [ack, wrong] });
  assert.equal(result.isCommitted, false);
  assert.equal(result.error, 'the ack of "in" failed: invalid or expired lease');
  assert.deepEqual(result.acked?.outcomes.map(({ success }) => success), [true, false]);
  assert.equal(await count(fixture), 1);
  assert.equal(await pop(fixture, "out"), undefined);
  // The lease still stands.
  const again = await run(fixture, { acks: [ack] });
  assert.equal(again.isCommitted, true);
});

Deno.test("where an item is misjudged, nothing is stored and no cursor moves", async () => {
  await using fixture = await open();
  const ack = await lease(fixture);
  const sealed = { ...out("b"), encrypted: true };
  const result = await run(fixture, { items: [out("a"), sealed], acks: [ack] });
  assert.equal(result.isCommitted, false);
  assert.deepEqual(result.pushed?.misjudged, ["out"]);
  assert.equal(await count(fixture), 1);
  assert.equal((await run(fixture, { acks: [ack] })).isCommitted, true);
});

Deno.test("a lease that is required has to be held", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  const { leaseId } = await lease(fixture);
  for (const requiredLeases of [[randomUUID()], ["no lease\0"], [leaseId, randomUUID()]]) {
    const result = await run(fixture, { items: [out("a")], requiredLeases });
    assert.deepEqual([result.isCommitted, result.error], [false, NOT_HELD]);
  }
  const other = "00000000-0000-4000-8000-000000000002";
  const items = [out("a")];
  const foreign = await fixture.store.transaction(other, {
    ...NOTHING,
    items,
    requiredLeases: [leaseId],
  });
  assert.equal(foreign.error, NOT_HELD);
  const twice = await run(fixture, { items, requiredLeases: [leaseId, leaseId] });
  assert.equal(twice.isCommitted, true);
  await sql.unsafe(
    `update ${schema}.cursor set lease_expires_at = now() - interval '1 s' where lease_id is not null`,
  );
  const late = await run(fixture, { items: [out("b")], requiredLeases: [leaseId] });
  assert.equal(late.error, NOT_HELD);
  assert.equal(await count(fixture), 2);
});

Deno.test("a required lease that runs out before the commit undoes everything", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  const ack = await lease(fixture, 2);
  // Makes the push take until the lease is over.
  await sql.unsafe(`
    create function ${schema}.linger() returns trigger language plpgsql as $$
    begin
      while clock_timestamp() < (select max(lease_expires_at) from ${schema}.cursor) loop
        perform pg_sleep(0.01);
      end loop;
      return new;
    end $$;
    create trigger linger before insert on ${schema}.message
      for each row execute function ${schema}.linger()`);
  const bare: Ack = { transactionId: "in", partitionId: ack.partitionId, status: "completed" };
  const result = await run(fixture, {
    items: [out("a")],
    acks: [bare],
    requiredLeases: [ack.leaseId],
  });
  assert.deepEqual([result.isCommitted, result.error], [false, NOT_HELD]);
  assert.notEqual(result.pushed, undefined, "the lease was held at first");
  assert.equal(await count(fixture), 1);
  assert.equal((await pop(fixture, "orders"))?.messages.length, 1);
});

Deno.test("a transaction that is repeated doubles nothing", async () => {
  await using fixture = await open();
  const ack = await lease(fixture);
  const request = { items: [out("a")], acks: [ack] };
  assert.equal((await run(fixture, request)).isCommitted, true);
  const again = await run(fixture, request);
  assert.deepEqual([again.isCommitted, await count(fixture)], [false, 2]);
  // Without a lease the ack has happened before, and the push is known by its id.
  const { sql, schema } = fixture;
  await sql.unsafe(`update ${schema}.message set created_at = created_at - interval '1 day'`);
  const bare: Ack = { transactionId: "in", partitionId: ack.partitionId, status: "completed" };
  const third = await run(fixture, { ...request, acks: [bare] });
  assert.equal(third.isCommitted, true);
  assert.deepEqual(third.pushed?.outcomes.map(({ status }) => status), ["duplicate"]);
  assert.deepEqual(third.acked?.outcomes.map(({ noop }) => noop), [true]);
  assert.equal(await count(fixture), 2);
});

Deno.test("transactions that cross each other all go through", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const partitions = ["a", "b", "c", "d"];
  const items = (run: number, order: readonly string[]) =>
    order.map((partition) => testItem(`${run} ${partition}`, { queue: "out", partition }));
  await store.push(TENANT, items(0, partitions));
  const acks: Ack[] = [];
  for (const _ of partitions) {
    const { partitionId, leaseId, messages } = (await pop(fixture, "out"))!;
    const { transactionId } = messages[0]!;
    acks.push({ transactionId, partitionId, leaseId: leaseId!, status: "completed" });
  }
  const results = await Promise.all(acks.map((ack, i) => {
    const order = i % 2 === 0 ? partitions : [...partitions].reverse();
    return run(fixture, { items: items(i + 1, order), acks: [ack] });
  }));
  assert.deepEqual(results.map(({ error, isCommitted }) => error ?? isCommitted), [
    true,
    true,
    true,
    true,
  ]);
  assert.equal(await count(fixture), 20);
});
