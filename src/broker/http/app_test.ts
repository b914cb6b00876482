import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import { HttpBench, type Reply } from "../testing/http_bench.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TENANT = "00000000-0000-0000-0000-000000000001";

async function push(bench: HttpBench, ...items: unknown[]): Promise<Reply> {
  return await bench.call("/api/v1/push", { body: { items } });
}

Deno.test("configure answers with the queue as it stands", async () => {
  const bench = await HttpBench.started();
  const { status, body } = await bench.call("/api/v1/configure", {
    body: { queue: "q", namespace: "n", options: { leaseTime: 5, mine: [1] } },
  });
  assert.equal(status, 200);
  assert.match(body.queueId, /./);
  assert.deepEqual(body, {
    configured: true,
    queueId: body.queueId,
    partitionId: null,
    queue: "q",
    namespace: "n",
    task: "",
    storage: "segments",
    options: { leaseTime: 5, mine: [1] },
  });
  const second = await bench.call("/api/v1/configure", { body: { queue: "q", task: "t" } });
  assert.equal(second.body.namespace, "n");
  assert.deepEqual(second.body.options, { leaseTime: 5, mine: [1] });
});

Deno.test("an option that is null keeps its value, and an unknown one is stored as null", async () => {
  const bench = await HttpBench.started();
  const options = { leaseTime: null, encryptionEnabled: false, windowBuffer: 0, mine: null };
  const { body } = await bench.call("/api/v1/configure", { body: { queue: "q", options } });
  assert.deepEqual(body.options, {
    leaseTime: 300,
    encryptionEnabled: false,
    windowBuffer: 0,
    mine: null,
  });
});

Deno.test("configure tells the peers to drop what they know of the queue", async () => {
  const bench = await HttpBench.started();
  await bench.call("/api/v1/configure", { body: { queue: "q" } });
  assert.deepEqual(bench.frames, [{ type: "queue_config_set", queue: "q", tenant: TENANT }]);
});

for (const body of [{}, { queue: 1 }, { queue: null }]) {
  Deno.test(`configure without a queue is refused: ${JSON.stringify(body)}`, async () => {
    const bench = await HttpBench.started();
    const reply = await bench.call("/api/v1/configure", { body });
    assert.equal(reply.status, 400);
    assert.deepEqual(reply.body, { error: "queue is required" });
  });
}

Deno.test("a push is answered with one result for each item", async () => {
  const bench = await HttpBench.started();
  const { status, body } = await push(
    bench,
    { queue: "q", payload: 1, transactionId: "t1" },
    { queue: "q", partition: "p", payload: null },
    { queue: "q", payload: 1, transactionId: "t1", partition: null },
  );
  assert.equal(status, 201);
  assert.match(body[0].message_id, UUID);
  assert.deepEqual(body, [
    {
      index: 0,
      message_id: body[0].message_id,
      transaction_id: "t1",
      queueName: "q",
      status: "queued",
    },
    {
      index: 1,
      message_id: body[1].message_id,
      transaction_id: body[1].message_id,
      queueName: "q",
      status: "queued",
    },
    {
      index: 2,
      message_id: body[0].message_id,
      transaction_id: "t1",
      queueName: "q",
      status: "duplicate",
    },
  ]);
});

Deno.test("an empty push is answered by an empty list", async () => {
  const bench = await HttpBench.started();
  const reply = await push(bench);
  assert.deepEqual([reply.status, reply.text], [201, "[]"]);
});

Deno.test("a push announces what it touched in one frame, and a duplicate nothing", async () => {
  const bench = await HttpBench.started();
  const items = ["a", "b", "a"].map((partition, i) => ({
    queue: "q",
    partition,
    payload: i,
    transactionId: `t${i}`,
  }));
  await push(bench, ...items);
  assert.deepEqual(bench.frames, [{
    type: "message_available",
    items: [
      { queue: "q", partition: "a", tenant: TENANT },
      { queue: "q", partition: "b", tenant: TENANT },
    ],
  }]);
  await push(bench, ...items);
  assert.equal(bench.frames.length, 1);
});

Deno.test("a pop answers with a batch", async () => {
  const bench = await HttpBench.started();
  const pushed = await push(bench, { queue: "q", partition: "p", payload: { a: 1 } });
  const { status, body } = await bench.call("/api/v1/pop/queue/q");
  assert.equal(status, 200);
  const { partitionId, leaseId } = body;
  assert.match(leaseId, /./);
  const place = { partitionId, partition: "p", leaseId, consumerGroup: "__QUEUE_MODE__" };
  assert.deepEqual(body, {
    success: true,
    queue: "q",
    ...place,
    messages: [{
      id: pushed.body[0].message_id,
      transactionId: pushed.body[0].transaction_id,
      traceId: null,
      data: { a: 1 },
      producerSub: null,
      createdAt: body.messages[0].createdAt,
      ...place,
    }],
    partitionsClaimed: 1,
  });
});

Deno.test("a pop that finds nothing is answered without a body", async () => {
  const bench = await HttpBench.started();
  const reply = await bench.call("/api/v1/pop/queue/q");
  assert.deepEqual([reply.status, reply.text], [204, ""]);
});

Deno.test("a payload comes back as the text that it was", async () => {
  const bench = await HttpBench.started();
  const payloads = [
    "12345678901234567890123",
    String.raw`{"b":1,"a":2,"b":3}`,
    String.raw`"\u0000\ud800\/é"`,
    "1.0",
    "[ 1,\n2 ]",
  ];
  const items = payloads.map((payload) => `{"queue":"q", "payload": ${payload} }`);
  await bench.call("/api/v1/push", { body: `{"items":[${items.join(",")}]}` });
  const { text } = await bench.call("/api/v1/pop/queue/q");
  for (const payload of payloads) assert(text.includes(`,"data":${payload},`), payload);
});

Deno.test("a pop of one partition takes from no other", async () => {
  const bench = await HttpBench.started();
  await push(bench, { queue: "q", partition: "a", payload: 1 });
  assert.equal((await bench.call("/api/v1/pop/queue/q/partition/b")).status, 204);
  // The query names no partition; only the path does.
  assert.equal((await bench.call("/api/v1/pop/queue/q?partition=b")).body.partition, "a");
});

Deno.test("names in a path are percent-decoded once", async () => {
  const bench = await HttpBench.started();
  for (const name of ["a/b", "a%2Fb", "ü?#&=+ %", "100%25"]) {
    await push(bench, { queue: name, partition: name, payload: 1 });
    const encoded = encodeURIComponent(name);
    const { status, body } = await bench.call(`/api/v1/pop/queue/${encoded}/partition/${encoded}`);
    assert.equal(status, 200, name);
    assert.deepEqual([body.queue, body.partition], [name, name]);
  }
});

Deno.test("a pop takes its size, its lease and its ending from the query", async () => {
  const bench = await HttpBench.started();
  await push(bench, ...[1, 2, 3].map((payload) => ({ queue: "q", payload })));
  const first = await bench.call("/api/v1/pop/queue/q?batch=2&autoAck=true&consumerGroup=");
  assert.equal(first.body.messages.length, 2);
  assert.equal(first.body.leaseId, "");
  const second = await bench.call(
    "/api/v1/pop/queue/q?batch=2&leaseSeconds=1&wait=false&consumerGroup=__QUEUE_MODE__",
  );
  assert.equal(second.body.messages.length, 1);
  assert.equal(bench.store.leaseCount, 1);
  await bench.clock.advance(1000);
  assert.equal(bench.store.leaseCount, 0);
});

Deno.test("a reply stops at the greatest body, but not below one message", async () => {
  const bench = await HttpBench.started({ bytesMax: 20_000 });
  const payload = "x".repeat(9000);
  await push(bench, { queue: "q", payload }, { queue: "q", payload: "x".repeat(8000) });
  await push(bench, { queue: "q", payload });
  const sizes = [];
  for (;;) {
    const { status, body, text } = await bench.call("/api/v1/pop/queue/q?autoAck=true");
    if (status === 204) break;
    assert(text.length <= 20_000);
    sizes.push(body.messages.length);
  }
  assert.deepEqual(sizes, [1, 1, 1]);
});

Deno.test("a pop that waits is answered by a push", async () => {
  const bench = await HttpBench.started();
  const waiting = bench.call("/api/v1/pop/queue/q?wait=true");
  await settle();
  assert.equal(bench.waker.parkedCount, 1);
  await push(bench, { queue: "q", payload: 1 });
  assert.equal((await waiting).status, 200);
  assert.equal(bench.clock.pending, 0);
});

Deno.test("a pop that waits is answered empty after its timeout", async () => {
  const bench = await HttpBench.started();
  const waiting = bench.call("/api/v1/pop/queue/q?wait=true&timeout=50");
  await bench.clock.advance(50);
  assert.equal((await waiting).status, 204);
});

Deno.test("a client that hangs up while its pop waits leaves nothing", async () => {
  const bench = await HttpBench.started();
  const controller = new AbortController();
  const waiting = bench.call("/api/v1/pop/queue/q?wait=true", { signal: controller.signal });
  await settle();
  controller.abort();
  await waiting;
  assert.equal(bench.waker.parkedCount, 0);
  assert.equal(bench.clock.pending, 0);
});

Deno.test("a batch whose reply cannot be delivered is given back", async () => {
  const bench = await HttpBench.started();
  await push(bench, { queue: "q", payload: 1 });
  const completed = Promise.reject(new Error("connection reset"));
  const { body } = await bench.call("/api/v1/pop/queue/q", { completed });
  await settle();
  assert.deepEqual(bench.store.givenBack, [body.leaseId]);
  assert.equal((await bench.call("/api/v1/pop/queue/q")).status, 200);
});

Deno.test("an ack completes a message and ends the lease with the last one", async () => {
  const bench = await HttpBench.started();
  await push(
    bench,
    { queue: "q", payload: 1, transactionId: "t1" },
    { queue: "q", payload: 2, transactionId: "t2" },
  );
  const { partitionId, leaseId } = (await bench.call("/api/v1/pop/queue/q")).body;
  const one = await bench.call("/api/v1/ack", {
    body: { transactionId: "t1", partitionId, leaseId, status: "acked", consumerGroup: null },
  });
  assert.equal(one.status, 200);
  const outcome = { success: true, error: null, dlq: false, noop: false };
  assert.deepEqual(one.body, [
    { index: 0, transactionId: "t1", ...outcome, leaseReleased: false },
  ]);
  const many = await bench.call("/api/v1/ack/batch", {
    body: {
      consumerGroup: "__QUEUE_MODE__",
      acknowledgments: [
        { transactionId: "t2", partitionId },
        { transactionId: "t2", partitionId: "unknown" },
      ],
    },
  });
  assert.deepEqual(many.body, [
    { index: 0, transactionId: "t2", ...outcome, leaseReleased: true },
    {
      index: 1,
      transactionId: "t2",
      success: false,
      error: "invalid or expired lease",
      leaseReleased: false,
      dlq: false,
      noop: false,
    },
  ]);
});

Deno.test("an ack of nothing is answered by an empty list", async () => {
  const bench = await HttpBench.started();
  const reply = await bench.call("/api/v1/ack/batch", { body: { acknowledgments: [] } });
  assert.deepEqual([reply.status, reply.text], [200, "[]"]);
});

for (
  const [word, comesBack] of [
    ["success", false],
    ["ok", false],
    ["retry", true],
    ["failed", true],
    ["whatever", true],
  ] as const
) {
  Deno.test(`an ack with status ${word} ${comesBack ? "gives back" : "completes"}`, async () => {
    const bench = await HttpBench.started();
    await push(bench, { queue: "q", payload: 1, transactionId: "t" });
    const { partitionId, leaseId } = (await bench.call("/api/v1/pop/queue/q")).body;
    const body = { transactionId: "t", partitionId, leaseId, status: word };
    assert.equal((await bench.call("/api/v1/ack", { body })).body[0].success, true);
    assert.equal((await bench.call("/api/v1/pop/queue/q")).status, comesBack ? 200 : 204);
  });
}

Deno.test("an ack is of its own group, that of its batch, or queue mode", async () => {
  const bench = await HttpBench.started();
  const groups: (string | undefined)[] = [];
  const place = { queue: "q", partition: "p" };
  bench.store.ack = (_tenant, acks) => {
    groups.push(...acks.map(({ consumerGroup }) => consumerGroup));
    const outcome = { success: true, leaseReleased: true, dlq: false, noop: false };
    return Promise.resolve({
      outcomes: acks.map(() => outcome),
      available: [{ ...place, consumerGroup: "g" }],
      delayed: [{ ...place, consumerGroup: "h", delayMs: 5 }],
    });
  };
  const woken: unknown[] = [];
  bench.waker.wake = (wake) => woken.push(wake.group);
  const ack = { transactionId: "t", partitionId: "p" };
  await bench.call("/api/v1/ack", { body: { ...ack, consumerGroup: "own" } });
  await bench.call("/api/v1/ack", { body: { ...ack, consumerGroup: "" } });
  const acknowledgments = [ack, { ...ack, consumerGroup: "own" }, { ...ack, consumerGroup: null }];
  const body = { consumerGroup: "all", acknowledgments };
  await bench.call("/api/v1/ack/batch", { body });
  assert.deepEqual(groups, ["own", undefined, "all", "own", "all"]);
  await bench.clock.advance(5);
  assert.deepEqual(woken, ["g", "g", "g", "h", "h", "h"]);
});

Deno.test("an ack that leaves messages wakes the next pop here and on the peers", async () => {
  const bench = await HttpBench.started();
  await push(bench, ...["t1", "t2"].map((id) => ({ queue: "q", payload: 1, transactionId: id })));
  const { partitionId } = (await bench.call("/api/v1/pop/queue/q?batch=1")).body;
  const waiting = bench.call("/api/v1/pop/queue/q?wait=true");
  await settle();
  await bench.call("/api/v1/ack", { body: { transactionId: "t1", partitionId } });
  assert.equal((await waiting).body.messages[0].transactionId, "t2");
  assert.equal(bench.frames.length, 2, "one for the push, one for the ack");
});

Deno.test("an ack that gives back with a delay wakes the next pop when the delay is over", async () => {
  const bench = await HttpBench.started();
  await push(bench, { queue: "q", payload: 1, transactionId: "t" });
  const { partitionId } = (await bench.call("/api/v1/pop/queue/q")).body;
  bench.store.delayed = [{ queue: "q", partition: "Default", delayMs: 1000 }];
  const body = { transactionId: "t", partitionId, status: "failed" };
  await bench.call("/api/v1/ack", { body });
  const frames = bench.frames.length;
  await bench.clock.advance(999);
  assert.equal(bench.frames.length, frames);
  await bench.clock.advance(1);
  assert.equal(bench.frames.length, frames + 1);
});

Deno.test("notify wakes those who wait here and sends a hint", async () => {
  const bench = await HttpBench.started();
  const waiting = bench.call("/api/v1/pop/queue/q?wait=true");
  await settle();
  await bench.store.push(TENANT, [
    { queue: "q", partition: "p", messageId: "m", transactionId: "m", payload: "1" },
  ]);
  const reply = await bench.call("/internal/api/notify", { body: { queue: "q" } });
  assert.deepEqual([reply.status, reply.body], [200, { status: "ok" }]);
  assert.equal((await waiting).status, 200);
  await bench.call("/internal/api/notify", { body: { queue: "q", partition: "p" } });
  assert.deepEqual(
    bench.frames,
    ["", "p"].map((partition) => ({
      type: "message_available",
      items: [{ queue: "q", partition, tenant: TENANT }],
    })),
  );
});

Deno.test("an unknown route is 404", async () => {
  const bench = await HttpBench.started();
  const reply = await bench.call("/api/v1/nothing");
  assert.equal(reply.status, 404);
  assert.deepEqual(reply.body, { error: "no such route: GET /api/v1/nothing" });
});

Deno.test("a HEAD request takes no messages", async () => {
  const bench = await HttpBench.started();
  await push(bench, { queue: "q", payload: 1 });
  const reply = await bench.call("/api/v1/pop/queue/q", { method: "HEAD" });
  assert.equal(reply.status, 405);
  assert.equal(bench.store.leaseCount, 0);
});

Deno.test("an error of this program is logged and told to nobody", async () => {
  const bench = await HttpBench.started();
  bench.store.push = () => Promise.reject(new Error("a secret of the database"));
  const reply = await push(bench, { queue: "q", payload: 1 });
  assert.deepEqual([reply.status, reply.body], [500, { error: "internal error" }]);
  assert.equal(bench.logger.entries[0]?.level, "error");
});
