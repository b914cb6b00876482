import assert from "node:assert/strict";
import { TENANT, testItem, useTestStores } from "../../testing/test_store.ts";
import { StoreUnavailableError } from "./store.ts";

const openStore = useTestStores();

const OTHER = "bbbbbbbb-0000-4000-8000-00000000000b";
const QUEUE_MODE = { queue: "orders", group: "__QUEUE_MODE__" };

Deno.test("the candidates are the partitions that can be taken from, longest waiting first", async () => {
  await using opened = await openStore();
  const { store } = opened;
  for (const partition of ["c", "a", "b", "leased", "emptied"]) {
    await store.push(TENANT, [testItem(partition, { partition })]);
  }
  const query = { queue: "orders", batch: 1 };
  await store.pop(TENANT, { ...query, partition: "leased", autoAck: false });
  await store.pop(TENANT, { ...query, partition: "emptied", autoAck: true });
  assert.deepEqual(await store.loadCandidates(TENANT, QUEUE_MODE, 10), ["c", "a", "b"]);
  assert.deepEqual(await store.loadCandidates(TENANT, QUEUE_MODE, 2), ["c", "a"]);
});

Deno.test("the candidates are those of one queue, one group and one tenant", async () => {
  await using opened = await openStore();
  const { store } = opened;
  await store.push(TENANT, [testItem("t", { partition: "own" })]);
  await store.push(TENANT, [testItem("t", { queue: "other", partition: "of another queue" })]);
  await store.push(OTHER, [testItem("t", { partition: "of another tenant" })]);
  assert.deepEqual(await store.loadCandidates(TENANT, QUEUE_MODE, 10), ["own"]);
  assert.deepEqual(await store.loadCandidates(OTHER, QUEUE_MODE, 10), ["of another tenant"]);
  const group = { queue: "orders", group: "g" };
  assert.deepEqual(await store.loadCandidates(TENANT, group, 10), []);
  const query = { queue: "orders", batch: 1, autoAck: true, consumerGroup: "g" };
  await store.pop(TENANT, { ...query, start: "all" });
  await store.push(TENANT, [testItem("u", { partition: "for the group too" })]);
  assert.deepEqual(await store.loadCandidates(TENANT, group, 10), ["for the group too"]);
});

Deno.test("a queue that nobody knows has no candidates", async () => {
  await using opened = await openStore();
  const nobody = { queue: "nobody's", group: "g" };
  assert.deepEqual(await opened.store.loadCandidates(TENANT, nobody, 10), []);
});

Deno.test("before the schema is there nobody is asked for candidates", async () => {
  await using opened = await openStore();
  const store = opened.another();
  await assert.rejects(store.loadCandidates(TENANT, QUEUE_MODE, 10), StoreUnavailableError);
});
