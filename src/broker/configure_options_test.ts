import assert from "node:assert/strict";
import { useTestStores } from "../testing/test_store.ts";
import { Api } from "./testing/api.ts";
import { HttpBench } from "./testing/http_bench.ts";

const open = useTestStores();

const INT32_MAX = 2_147_483_647;

/** The options that are whole numbers, with the least that each can be. */
const NUMBERS: Readonly<Record<string, number>> = {
  leaseTime: 1,
  retryLimit: 0,
  retryDelay: 0,
  dedupWindowSeconds: 0,
  delayedProcessing: 0,
  windowBuffer: 0,
  retentionSeconds: 0,
  completedRetentionSeconds: 0,
};

const SWITCHES = ["dlqAfterMaxRetries", "encryptionEnabled"];

Deno.test("each option that has an effect is refused by its name where it is out of bounds", async () => {
  const bench = await HttpBench.started();
  const wrong: [string, unknown][] = [
    ...Object.entries(NUMBERS).flatMap(([name, min]) =>
      [min - 1, INT32_MAX + 1, 1.5, "1", true, [], {}].map((value): [string, unknown] => [
        name,
        value,
      ])
    ),
    ...SWITCHES.flatMap((name) =>
      [0, 1, "true", [], {}].map((value): [string, unknown] => [name, value])
    ),
  ];
  for (const [name, value] of wrong) {
    const body = { queue: "q", options: { [name]: value } };
    const reply = await bench.call("/api/v1/configure", { body });
    assert.equal(reply.status, 400, `${name} ${JSON.stringify(value)}`);
    assert.ok(reply.body.error.startsWith(`options.${name}: must be `), reply.body.error);
  }
  assert.deepEqual(bench.frames, []);
});

Deno.test("each option is kept at both of its bounds, and those that are not mentioned stay", async () => {
  await using api = await Api.start(await open());
  const { body: defaults } = await api.call("/api/v1/configure", { queue: "q" });
  assert.deepEqual(defaults.options, {
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
  });
  let expected = defaults.options;
  for (const [name, min] of Object.entries(NUMBERS)) {
    for (const value of [INT32_MAX, min]) {
      const { body } = await api.call("/api/v1/configure", {
        queue: "q",
        options: { [name]: value },
      });
      expected = { ...expected, [name]: value };
      assert.deepEqual(body.options, expected);
    }
  }
});

Deno.test("a queue works with its options at their upper bounds", async () => {
  await using api = await Api.start(await open());
  const { delayedProcessing: _d, windowBuffer: _w, ...numbers } = NUMBERS;
  const options = Object.fromEntries(Object.keys(numbers).map((name) => [name, INT32_MAX]));
  for (
    const [queue, more] of Object.entries({ now: {}, later: { delayedProcessing: INT32_MAX } })
  ) {
    await api.call("/api/v1/configure", { queue, options: { ...options, ...more } });
    const items = [{ queue, payload: 1, transactionId: "t" }];
    assert.equal((await api.call("/api/v1/push", { items })).body[0].status, "queued");
    assert.equal((await api.call("/api/v1/push", { items })).body[0].status, "duplicate");
  }
  assert.equal((await api.call("/api/v1/pop/queue/later")).status, 204);
  const { partitionId, leaseId } = (await api.call("/api/v1/pop/queue/now")).body;
  const ack = { transactionId: "t", partitionId, leaseId, status: "failed" };
  assert.equal((await api.call("/api/v1/ack", ack)).body[0].success, true);
  assert.equal(
    (await api.call("/api/v1/pop/queue/now")).status,
    204,
    "it waits for its retryDelay",
  );
});

Deno.test("any other option is stored and returned as it was given", async () => {
  await using api = await Api.start(await open());
  const others = { priority: 5, "ü \u0000": [1, null, { "": "\ud83d\ude00" }], maxSize: null };
  const first = await api.call("/api/v1/configure", { queue: "q", options: others });
  const { body } = await api.call("/api/v1/configure", { queue: "q", options: { priority: "x" } });
  for (const [name, value] of Object.entries(others)) {
    assert.deepEqual(first.body.options[name], value);
    assert.deepEqual(body.options[name], name === "priority" ? "x" : value);
  }
});
