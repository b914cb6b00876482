import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import { HttpBench, type Reply } from "../testing/http_bench.ts";

async function push(bench: HttpBench, item: unknown): Promise<Reply> {
  return await bench.call("/api/v1/push", { body: { items: [item] } });
}

Deno.test("a healthy replica says so", async () => {
  const bench = await HttpBench.started();
  const { status, body } = await bench.call("/health");
  assert.equal(status, 200);
  assert.equal(body.status, "healthy");
  assert.equal(body.database, "connected");
  assert.equal(typeof body.engine, "string");
  assert.equal(typeof body.version, "string");
});

Deno.test("while PostgreSQL is away data routes answer 503 and the replica is alive", async () => {
  const bench = await HttpBench.started();
  bench.store.isAway = true;
  const ack = { transactionId: "t", partitionId: "p" };
  for (
    const reply of [
      await push(bench, { queue: "q", payload: 1 }),
      await bench.call("/api/v1/pop/queue/q?wait=true"),
      await bench.call("/api/v1/ack", { body: ack }),
      await bench.call("/api/v1/ack/batch", { body: { acknowledgments: [ack] } }),
      await bench.call("/api/v1/configure", { body: { queue: "q" } }),
      await bench.call("/health"),
    ]
  ) {
    assert.equal(reply.status, 503);
    assert.equal(typeof reply.body.error, "string");
  }
  assert.deepEqual((await bench.call("/status")).body.status, "ok");
  bench.store.isAway = false;
  assert.equal((await push(bench, { queue: "q", payload: 1 })).status, 201);
  assert.equal((await bench.call("/health")).status, 200);
  assert.deepEqual(bench.logger.entries, []);
});

Deno.test("before the schema is there data routes answer 503 without asking the store", async () => {
  const bench = new HttpBench();
  assert.equal((await bench.call("/api/v1/pop/queue/q")).status, 503);
  assert.equal((await bench.call("/health")).status, 503);
  assert.equal((await bench.call("/status")).status, 200);
  assert.equal(bench.store.popCount, 0);
});

Deno.test("the two statistics routes answer the same body", async () => {
  const bench = await HttpBench.started();
  const first = await bench.call("/internal/api/shared-state/stats");
  assert.equal(first.status, 200);
  assert.deepEqual(first.body, {
    enabled: false,
    reason: "no_peers",
    maintenance_mode: false,
    pop_maintenance_mode: false,
    waker: {
      parked: 0,
      first_queries: 0,
      wake_queries: 0,
      poll_queries: 0,
      replies_at_once: 0,
      replies_by_wake: 0,
      replies_by_poll: 0,
      empty_by_timeout: 0,
    },
  });
  assert.deepEqual((await bench.call("/internal/api/inter-instance/stats")).body, first.body);
});

Deno.test("the shared state route is minimal", async () => {
  const bench = await HttpBench.started();
  const { status, body } = await bench.call("/api/v1/system/shared-state");
  assert.equal(status, 200);
  assert.deepEqual(body, {
    enabled: false,
    reason: "single_node_segments_broker",
    maintenance_mode: false,
    pop_maintenance_mode: false,
  });
});

Deno.test("the statistics tell replies by a wake from those at once", async () => {
  const bench = await HttpBench.started();
  const waiting = bench.call("/api/v1/pop/queue/q?wait=true");
  await settle();
  const { waker } = (await bench.call("/internal/api/shared-state/stats")).body;
  assert.equal(waker.parked, 1);
  await push(bench, { queue: "q", payload: 1 });
  await waiting;
  await push(bench, { queue: "q", partition: "p", payload: 1 });
  await bench.call("/api/v1/pop/queue/q");
  const after = (await bench.call("/internal/api/shared-state/stats")).body.waker;
  assert.deepEqual([after.parked, after.replies_by_wake, after.replies_at_once], [0, 1, 1]);
});
