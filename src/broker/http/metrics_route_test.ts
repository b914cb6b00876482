import assert from "node:assert/strict";
import { type ReadMetrics, readMetrics } from "../metrics/testing/read_metrics.ts";
import { HttpBench, toRequest } from "../testing/http_bench.ts";

async function metricsOf(bench: HttpBench): Promise<ReadMetrics> {
  const completed = Promise.resolve();
  const response = await bench.handler(toRequest("/metrics", {}), { completed });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  return readMetrics(await response.text());
}

async function push(bench: HttpBench, queue: string, transactionId: string): Promise<void> {
  const items = [{ queue, transactionId, payload: 1 }];
  assert.equal((await bench.call("/api/v1/push", { body: { items } })).status, 201);
}

Deno.test("pushes, pops and acks are told by outcome, and pops that came back empty", async () => {
  const bench = await HttpBench.started();
  await push(bench, "q", "t1");
  await push(bench, "q", "t1");
  const { body } = await bench.call("/api/v1/pop/queue/q");
  assert.equal((await bench.call("/api/v1/pop/queue/q")).status, 204);
  assert.equal((await bench.call("/api/v1/pop/queue/q?batch=x")).status, 400);
  const ack = { transactionId: "t1", partitionId: body.partitionId, leaseId: body.leaseId };
  await bench.call("/api/v1/ack", { body: ack });
  await bench.call("/api/v1/ack", { body: ack });
  const { value } = await metricsOf(bench);
  assert.equal(value("queen_mesh_pushed_messages_total", { outcome: "queued" }), 1);
  assert.equal(value("queen_mesh_pushed_messages_total", { outcome: "duplicate" }), 1);
  assert.equal(value("queen_mesh_pops_total", { outcome: "batch" }), 1);
  assert.equal(value("queen_mesh_pops_total", { outcome: "empty" }), 1);
  assert.equal(value("queen_mesh_pops_total", { outcome: "refused" }), 1);
  assert.equal(value("queen_mesh_acks_total", { outcome: "applied" }), 1);
  assert.equal(value("queen_mesh_acks_total", { outcome: "refused" }), 1);
  assert.equal(value("queen_mesh_http_responses_total", { code: "4xx" }), 1);
  assert.equal(value("queen_mesh_push_duration_seconds_count"), 2);
});

Deno.test("what clients call things is in no label, so that no series come of it", async () => {
  const bench = await HttpBench.started();
  await push(bench, "first", "t");
  const { series } = await metricsOf(bench);
  for (let i = 0; i < 20; i++) {
    await push(bench, `queue-${i}`, "t");
    await bench.call(`/api/v1/pop/queue/queue-${i}`);
    await bench.call(`/no/such/route-${i}`);
  }
  const after = await metricsOf(bench);
  assert.equal(after.series.length, series.length);
  assert.doesNotMatch(JSON.stringify(after.series), /queue-|route-/);
});

Deno.test("with PostgreSQL away the metrics are told, and that pops fail", async () => {
  const bench = await HttpBench.started();
  bench.store.isAway = true;
  assert.equal((await bench.call("/api/v1/pop/queue/q")).status, 503);
  const { value } = await metricsOf(bench);
  assert.equal(value("queen_mesh_pops_total", { outcome: "error" }), 1);
  assert.equal(value("queen_mesh_http_responses_total", { code: "5xx" }), 1);
});
