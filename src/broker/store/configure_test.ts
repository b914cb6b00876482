import assert from "node:assert/strict";
import { TENANT, testItem, useTestStores } from "../../testing/test_store.ts";

const open = useTestStores();

const DEFAULTS = {
  leaseTime: 300,
  retryLimit: 3,
  retryDelay: 1000,
  dlqAfterMaxRetries: true,
  dedupWindowSeconds: 3600,
  encryptionEnabled: false,
  delayedProcessing: 0,
  windowBuffer: 0,
  retentionSeconds: 0,
  completedRetentionSeconds: 0,
};

Deno.test("a queue is configured with the defaults, and options not mentioned stay", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const first = await store.configure(TENANT, { queue: "orders" });
  assert.deepEqual(first, { queueId: first.queueId, namespace: "", task: "", options: DEFAULTS });

  const options = { retryLimit: 0, dlqAfterMaxRetries: false, leaseTime: 5 };
  const second = await store.configure(TENANT, { queue: "orders", namespace: "n", options });
  assert.deepEqual(second.options, { ...DEFAULTS, ...options });

  const third = await store.configure(TENANT, { queue: "orders", task: "t" });
  assert.deepEqual(third, { ...second, task: "t" });
});

Deno.test("a queue made by its first push has a lease of 60 s until it is configured", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.push(TENANT, [testItem("1")]);
  const kept = await store.configure(TENANT, { queue: "orders" });
  assert.deepEqual(kept.options, { ...DEFAULTS, leaseTime: 60 });
  const set = await store.configure(TENANT, { queue: "orders", options: { leaseTime: 7 } });
  assert.equal(set.options["leaseTime"], 7);
});

Deno.test("options without an effect are kept whatever they are", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const odd = {
    "\u0000 and \ud800": ["\u0000", "\udfff", 1e300, null],
    constructor: "x",
    toString: { a: [{}] },
  };
  await store.configure(TENANT, { queue: "orders", options: { priority: 5, left: undefined } });
  const { options } = await store.configure(TENANT, { queue: "orders", options: odd });
  assert.deepEqual({ ...options }, { ...DEFAULTS, priority: 5, ...odd });
});

Deno.test("an option that has an effect must be of its type and within its bounds", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const configure = (options: Record<string, unknown>) =>
    store.configure(TENANT, { queue: "orders", options });
  await assert.rejects(configure({ leaseTime: "5" }), TypeError);
  await assert.rejects(configure({ dlqAfterMaxRetries: 1 }), TypeError);
  await assert.rejects(configure({ retryLimit: null }), TypeError);
  await assert.rejects(configure({ leaseTime: 0 }), RangeError);
  await assert.rejects(configure({ retryDelay: 1.5 }), RangeError);
  await assert.rejects(configure({ windowBuffer: 2 ** 31 }), /windowBuffer must be a whole number/);
});

Deno.test("a queue of one name in two tenants is two queues", async () => {
  await using fixture = await open();
  const { store } = fixture;
  const other = "00000000-0000-4000-8000-000000000002";
  const mine = await store.configure(TENANT, { queue: "orders", options: { leaseTime: 1 } });
  const theirs = await store.configure(other, { queue: "orders" });
  assert.notEqual(mine.queueId, theirs.queueId);
  assert.equal(theirs.options["leaseTime"], 300);
});
