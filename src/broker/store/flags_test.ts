import assert from "node:assert/strict";
import { TENANT, testItem, useTestStores } from "../../testing/test_store.ts";

const open = useTestStores();

Deno.test("every write of a flag raises its version, and that of no other", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const other = fixture.another();
  await other.migrate();
  const off = { enabled: false, version: 0 };
  assert.deepEqual(await store.readFlags(), { maintenance: off, pop_maintenance: off });
  assert.deepEqual(await store.writeFlag("maintenance", true), { enabled: true, version: 1 });
  assert.deepEqual(await other.writeFlag("maintenance", true), { enabled: true, version: 2 });
  const read = await other.readFlags();
  assert.deepEqual(read, { maintenance: { enabled: true, version: 2 }, pop_maintenance: off });
});

Deno.test("writes of one flag at once all get versions of their own", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const writes = Array.from({ length: 8 }, (_, i) => store.writeFlag("maintenance", i % 2 === 0));
  const values = await Promise.all(writes);
  assert.deepEqual(values.map(({ version }) => version).sort(), [1, 2, 3, 4, 5, 6, 7, 8]);
  const last = values.find(({ version }) => version === 8);
  assert.deepEqual((await store.readFlags()).maintenance, last);
});

Deno.test("what is kept of a queue's configuration is that of the tenant's own queue", async () => {
  await using fixture = await open();
  const { store } = fixture;
  assert.equal(await store.queueConfig(TENANT, "orders"), undefined);
  await store.push(TENANT, [testItem("1")]);
  const facts = { leaseSeconds: 60, encryptionEnabled: false };
  assert.deepEqual(await store.queueConfig(TENANT, "orders"), facts);
  await store.configure(TENANT, {
    queue: "orders",
    options: { leaseTime: 7, encryptionEnabled: true },
  });
  const changed = { leaseSeconds: 7, encryptionEnabled: true };
  assert.deepEqual(await store.queueConfig(TENANT, "orders"), changed);
  const other = "aaaaaaaa-0000-4000-8000-000000000002";
  assert.equal(await store.queueConfig(other, "orders"), undefined);
});

Deno.test("the encrypted queues of all tenants are named, up to a count", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const other = "aaaaaaaa-0000-4000-8000-000000000002";
  await store.configure(TENANT, { queue: "clear" });
  for (const tenant of [TENANT, other]) {
    await store.configure(tenant, { queue: "secret", options: { encryptionEnabled: true } });
  }
  const queues = await store.encryptedQueues(10);
  assert.deepEqual(queues.map(({ tenant }) => tenant).sort(), [TENANT, other].sort());
  assert.deepEqual(queues.map(({ queue }) => queue), ["secret", "secret"]);
  assert.equal((await store.encryptedQueues(1)).length, 1);
  await store.deleteQueue(other, "secret");
  assert.deepEqual(await store.encryptedQueues(10), [{ tenant: TENANT, queue: "secret" }]);
});
