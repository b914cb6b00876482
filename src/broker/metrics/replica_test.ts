import assert from "node:assert/strict";
import { useTestStores } from "../../testing/test_store.ts";
import { Api } from "../testing/api.ts";
import { type ReadMetrics, readMetrics } from "./testing/read_metrics.ts";

const openStore = useTestStores();

async function metricsOf(api: Api): Promise<ReadMetrics> {
  const { status, text } = await api.call("/metrics");
  assert.equal(status, 200);
  return readMetrics(text);
}

Deno.test("a replica tells how its pool stands, and what its wakes found and how fast", async () => {
  await using api = await Api.start(await openStore({ poolSize: 7 }));
  const waiting = api.call("/api/v1/pop/queue/q?wait=true&timeout=300000");
  await api.untilParked(1);
  const before = await metricsOf(api);
  assert.equal(before.value("queen_mesh_pops_parked"), 1);
  assert.equal(before.value("queen_mesh_hot_list_rings"), 1);
  assert.equal(before.value("queen_mesh_postgres_connections_max"), 7);
  assert.equal(before.value("queen_mesh_postgres_calls_waiting"), 0);
  assert(before.value("queen_mesh_postgres_connections", { state: "idle" }) > 0);
  await api.call("/api/v1/push", { items: [{ queue: "q", payload: 1 }] });
  assert.equal((await waiting).status, 200);
  const { value } = await metricsOf(api);
  assert.equal(value("queen_mesh_pops_parked"), 0);
  assert.equal(value("queen_mesh_pop_queries_total", { cause: "wake" }), 1);
  assert.equal(value("queen_mesh_pop_query_hits_total", { cause: "wake" }), 1);
  assert.equal(value("queen_mesh_wake_duration_seconds_count"), 1);
  // The first query, which found nothing, and the one of the wake.
  assert.equal(value("queen_mesh_pop_duration_seconds_count"), 2);
  assert.equal(value("queen_mesh_push_duration_seconds_count"), 1);
});

Deno.test("a transaction's messages and acks count once it is committed", async () => {
  await using api = await Api.start(await openStore());
  const push = { type: "push", items: [{ queue: "q", transactionId: "t", payload: 1 }] };
  await api.call("/api/v1/transaction", { operations: [push] });
  const { body } = await api.call("/api/v1/pop/queue/q");
  const { partitionId, leaseId } = body;
  const ack = { type: "ack", transactionId: "t", partitionId, leaseId };
  const other = { type: "push", items: [{ queue: "q", transactionId: "u", payload: 1 }] };
  const unknown = { ...ack, transactionId: "v" };
  await api.call("/api/v1/transaction", { operations: [other, unknown] });
  await api.call("/api/v1/transaction", { operations: [ack] });
  const { value } = await metricsOf(api);
  assert.equal(value("queen_mesh_transactions_total", { outcome: "committed" }), 2);
  assert.equal(value("queen_mesh_transactions_total", { outcome: "rolled_back" }), 1);
  assert.equal(value("queen_mesh_pushed_messages_total", { outcome: "queued" }), 1);
  assert.equal(value("queen_mesh_acks_total", { outcome: "applied" }), 1);
  assert.equal(value("queen_mesh_acks_total", { outcome: "refused" }), 0);
});
