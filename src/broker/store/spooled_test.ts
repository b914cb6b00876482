import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";
import type { QueryOptions } from "./pool.ts";
import { storeSpooled } from "./spooled.ts";
import { type SpooledItem, StoreDataError } from "./store.ts";

const open = useTestStores();

const OTHER = "aaaaaaaa-0000-4000-8000-000000000002";

function spooled(transactionId: string, changes: Partial<SpooledItem> = {}): SpooledItem {
  return { ...testItem(transactionId), tenant: TENANT, acceptedAt: Date.now(), ...changes };
}

/** The stored transactionIds of a tenant, in number order. */
async function stored({ sql, schema }: TestStore, tenant = TENANT): Promise<string[]> {
  const rows = await sql.unsafe(
    `select transaction_id from ${schema}.message
      join ${schema}.partition on partition.id = message.partition_id
      join ${schema}.queue on queue.id = partition.queue_id
      where tenant = $1 order by partition.id, number`,
    [tenant],
  );
  return rows.map((row) => row["transaction_id"]);
}

Deno.test("a spooled batch is stored in its order, with its position", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const spoolId = randomUUID();
  assert.equal(await store.spoolPosition(spoolId), 0);
  const items = ["1", "2", "3"].map((id) => spooled(id));
  const result = await store.storeSpooled({ spoolId, after: 0, position: 3, items });
  assert.equal(result.position, 3);
  assert.deepEqual(result.touched, [{ tenant: TENANT, queue: "orders", partition: "Default" }]);
  assert.equal(await store.spoolPosition(spoolId), 3);
  assert.deepEqual(await stored(fixture), ["1", "2", "3"]);
});

Deno.test("a spooled batch that is stored again does nothing, without any dedup window", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.configure(TENANT, { queue: "orders", options: { dedupWindowSeconds: 0 } });
  const batch = { spoolId: randomUUID(), after: 0, position: 1, items: [spooled("1")] };
  await store.storeSpooled(batch);
  const again = await store.storeSpooled(batch);
  assert.deepEqual(again, { position: 1, isMisjudged: false, touched: [] });
  const late = { ...batch, after: 5, position: 6, items: [spooled("2")] };
  assert.equal((await store.storeSpooled(late)).position, 1);
  assert.deepEqual(await stored(fixture), ["1"]);
});

Deno.test("batches of one spool that arrive at once are stored once", async () => {
  await using fixture = await open();
  const batch = { spoolId: randomUUID(), after: 0, position: 1, items: [spooled("1")] };
  await fixture.store.configure(TENANT, { queue: "orders", options: { dedupWindowSeconds: 0 } });
  await Promise.all(Array.from({ length: 5 }, () => fixture.store.storeSpooled(batch)));
  assert.deepEqual(await stored(fixture), ["1"]);
});

Deno.test("a spooled message that was stored by an attempt of unknown outcome stays single", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.configure(TENANT, { queue: "orders", options: { dedupWindowSeconds: 1 } });
  const item = testItem("1");
  await store.push(TENANT, [item]);
  const items = [spooled("1", { ...item, acceptedAt: Date.now() - 60_000 })];
  const { touched } = await store.storeSpooled({
    spoolId: randomUUID(),
    after: 0,
    position: 1,
    items,
  });
  assert.deepEqual(touched, []);
  assert.deepEqual(await stored(fixture), ["1"]);
});

Deno.test("for duplicates the time counts at which a spooled message was accepted", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.configure(TENANT, { queue: "orders", options: { dedupWindowSeconds: 10 } });
  const now = Date.now();
  await store.push(TENANT, [testItem("now")]);
  const at = (transactionId: string, ageMs: number) =>
    spooled(transactionId, { acceptedAt: now - ageMs });
  const result = await store.storeSpooled({
    spoolId: randomUUID(),
    after: 0,
    position: 5,
    items: [
      at("now", 60_000), // long before the one that is stored
      at("a", 59_000),
      at("a", 55_000), // within its window
      at("a", 48_000), // within that of the duplicate, which does not count
      at("a", 30_000),
    ],
  });
  assert.equal(result.position, 5);
  assert.deepEqual(await stored(fixture), ["now", "now", "a", "a", "a"]);
  // The message was stored just now, and accepted long ago.
  const { outcomes } = await store.push(TENANT, [testItem("a")]);
  assert.equal(outcomes[0]!.status, "queued");
});

Deno.test("a spooled message accepted by a clock that is ahead counts as accepted now", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const items = [spooled("1", { acceptedAt: Date.now() + 3_600_000_000 })];
  await store.storeSpooled({ spoolId: randomUUID(), after: 0, position: 1, items });
  const { outcomes } = await store.push(TENANT, [testItem("1")]);
  assert.equal(outcomes[0]!.status, "duplicate");
});

Deno.test("a spooled batch of several tenants reaches each of them", async () => {
  await using fixture = await open();
  const items = [spooled("1", { tenant: OTHER }), spooled("2"), spooled("3", { tenant: OTHER })];
  const { touched } = await fixture.store.storeSpooled({
    spoolId: randomUUID(),
    after: 0,
    position: 3,
    items,
  });
  assert.deepEqual(await stored(fixture), ["2"]);
  assert.deepEqual(await stored(fixture, OTHER), ["1", "3"]);
  assert.deepEqual(touched.map(({ tenant }) => tenant).sort(), [TENANT, OTHER].sort());
});

Deno.test("a spooled batch that misjudges the encryption of one queue stores nothing", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.configure(TENANT, { queue: "secret", options: { encryptionEnabled: true } });
  const spoolId = randomUUID();
  const items = [spooled("1"), spooled("2", { queue: "secret" })];
  const result = await store.storeSpooled({ spoolId, after: 0, position: 2, items });
  assert.deepEqual(result, { position: 0, isMisjudged: true, touched: [] });
  assert.deepEqual(await stored(fixture), []);
  assert.equal(await store.spoolPosition(spoolId), 0);
  const sealed = items.map((item) => ({ ...item, encrypted: item.queue === "secret" }));
  assert.equal(
    (await store.storeSpooled({ spoolId, after: 0, position: 2, items: sealed })).position,
    2,
  );
});

Deno.test("spooled messages that PostgreSQL refuses are told from an outage", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const batch = { spoolId: randomUUID(), after: 0, position: 1 };
  const refused = { ...batch, items: [spooled("1", { payload: "\u0000" })] };
  await assert.rejects(store.storeSpooled(refused), StoreDataError);
  assert.equal(await store.spoolPosition(batch.spoolId), 0);
  // The position passes over it.
  assert.equal((await store.storeSpooled({ ...batch, items: [] })).position, 1);
});

Deno.test("a push that misjudges the encryption of a queue stores nothing in that queue", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await store.configure(TENANT, { queue: "secret", options: { encryptionEnabled: true } });
  const items = [testItem("1", { queue: "secret" }), testItem("2")];
  const { outcomes, misjudged } = await store.push(TENANT, items);
  assert.deepEqual(outcomes.map(({ status }) => status), ["failed", "queued"]);
  assert.deepEqual(misjudged, ["secret"]);
  await store.push(TENANT, [testItem("1", { queue: "secret", encrypted: true })]);
  const rows = await sql.unsafe(
    `select transaction_id, encrypted from ${schema}.message order by transaction_id`,
  );
  assert.deepEqual(rows.map((row) => [row["transaction_id"], row["encrypted"]]), [
    ["1", true],
    ["2", false],
  ]);
  await store.configure(TENANT, { queue: "secret", options: { encryptionEnabled: false } });
  const late = await store.push(TENANT, [testItem("3", { queue: "secret", encrypted: true })]);
  assert.deepEqual(late.misjudged, ["secret"]);
});

Deno.test("a spooled batch says of each partition when it can be taken", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.configure(TENANT, { queue: "later", options: { delayedProcessing: 60 } });
  const items = [spooled("1", { queue: "later" }), spooled("2"), spooled("3", { queue: "later" })];
  const batch = { spoolId: randomUUID(), after: 0, position: 3, items };
  const { touched } = await store.storeSpooled(batch);
  const delays = new Map(touched.map(({ queue, delayMs }) => [queue, delayMs]));
  assert.equal(delays.get("orders"), undefined);
  assert.ok(delays.has("orders"));
  const later = delays.get("later")!;
  assert.ok(later > 0 && later <= 60_000, `${later} ms`);
});

Deno.test("a spooled batch gets more time where it is large", async () => {
  const given: unknown[] = [];
  const pool = {
    query(_text: string, _parameters: unknown, { timeouts }: QueryOptions = {}) {
      given.push(timeouts);
      return Promise.resolve([{ held: "1", item: null }]);
    },
  };
  for (const length of [0, 4 * 1024 * 1024, 4 * 1024 * 1024 + 1, 64 * 1024 * 1024]) {
    const items = [spooled("1", { payload: "1".repeat(length) })];
    await storeSpooled(pool, "mesh", { spoolId: "s", after: 0, position: 1, items });
  }
  assert.deepEqual(given, [1, 1, 2, 16]);
});
