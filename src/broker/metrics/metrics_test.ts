import assert from "node:assert/strict";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { NORMAL_MODES } from "../modes.ts";
import type { PeerStats } from "../../mesh/peer_stats.ts";
import type { MeshStats } from "../../mesh/stats.ts";
import { Metrics } from "./metrics.ts";
import { readMetrics } from "./testing/read_metrics.ts";

/** Every metric and its type. A dashboard stands on these: a name is never changed. */
const EXPECTED = {
  queen_mesh_acks_total: "counter",
  queen_mesh_build_info: "gauge",
  queen_mesh_handshake_failures_total: "counter",
  queen_mesh_hot_list_bytes: "gauge",
  queen_mesh_hot_list_hints_dropped_total: "counter",
  queen_mesh_hot_list_refused_total: "counter",
  queen_mesh_hot_list_rings: "gauge",
  queen_mesh_http_responses_total: "counter",
  queen_mesh_maintenance_mode: "gauge",
  queen_mesh_messages_received_total: "counter",
  queen_mesh_peer_connected: "gauge",
  queen_mesh_peer_messages_coalesced_total: "counter",
  queen_mesh_peer_messages_dropped_total: "counter",
  queen_mesh_peer_messages_queued: "gauge",
  queen_mesh_peer_messages_sent_total: "counter",
  queen_mesh_pop_duration_seconds: "histogram",
  queen_mesh_pop_queries_total: "counter",
  queen_mesh_pop_query_hits_total: "counter",
  queen_mesh_pops_parked: "gauge",
  queen_mesh_pops_timed_out_total: "counter",
  queen_mesh_pops_total: "counter",
  queen_mesh_postgres_calls_waiting: "gauge",
  queen_mesh_postgres_connections: "gauge",
  queen_mesh_postgres_connections_max: "gauge",
  queen_mesh_push_duration_seconds: "histogram",
  queen_mesh_pushed_messages_total: "counter",
  queen_mesh_servers: "gauge",
  queen_mesh_spool_oldest_age_seconds: "gauge",
  queen_mesh_spool_records: "gauge",
  queen_mesh_transactions_total: "counter",
  queen_mesh_wake_duration_seconds: "histogram",
};

function peer(host: string, changes: Partial<PeerStats>): PeerStats {
  return {
    host,
    port: 6633,
    connected: false,
    resolved: false,
    resolved_ip: null,
    state: "waiting",
    last_error: null,
    messages_asked: 0,
    messages_sent: 0,
    messages_dropped: 0,
    messages_coalesced: 0,
    queued: 0,
    ...changes,
  };
}

const MESH: MeshStats = {
  server_id: "a",
  transport: "tcp-mesh",
  port: 6633,
  peer_count: 2,
  peers: [
    peer("b", { connected: true, messages_sent: 5, queued: 2, messages_coalesced: 1 }),
    peer("c", { messages_dropped: 7 }),
  ],
  self: [],
  servers_alive: 1,
  servers_dead: 2,
  servers: [],
  messages_sent: 5,
  messages_received: 9,
  messages_dropped: 7,
  messages_coalesced: 1,
  signature_failures: 3,
  handshake_failures: 3,
  sequence_rejections: 0,
  enabled: true,
  running: true,
};

const NO_POPS = {
  firstQueries: 0,
  wakeQueries: 0,
  pollQueries: 0,
  repliesAtOnce: 0,
  repliesByWake: 0,
  repliesByPoll: 0,
  emptyByTimeout: 0,
};

function make(changes: Partial<ConstructorParameters<typeof Metrics>[0]["sources"]> = {}) {
  const clock = new VirtualClock();
  const metrics = new Metrics({
    clock,
    sources: {
      meshStats: () => MESH,
      modes: () => NORMAL_MODES,
      parkedCount: () => 0,
      popCounts: () => NO_POPS,
      hotList: () => ({ rings: 0, bytes: 0, refused: 0, hintsDropped: 0 }),
      ...changes,
    },
  });
  return { clock, metrics };
}

Deno.test("these are all metrics, by name and type", async () => {
  const { types } = readMetrics(await make().metrics.text());
  assert.deepEqual(Object.fromEntries([...types].sort()), EXPECTED);
});

Deno.test("every metric's name follows Prometheus's rules", async () => {
  const { types, help } = readMetrics(await make().metrics.text());
  for (const [name, type] of types) {
    assert.match(name, /^queen_mesh(_[a-z]+)+$/);
    assert.equal(name.endsWith("_total"), type === "counter", `${name}: counters alone are totals`);
    if (type === "histogram") assert.match(name, /_duration_seconds$/);
    // Base units only, and no suffix that a histogram's own series have.
    assert.doesNotMatch(
      name,
      /_(ms|milliseconds|minutes|kb|mb|percent|count|sum|bucket)(_total)?$/,
    );
    if (/_(age|duration)(_|$)/.test(name)) assert.match(name, /_seconds$/);
    assert.match(help.get(name) ?? "", /^[A-Z].+\.$|^Which version/, name);
  }
});

Deno.test("the mesh is told by peer", async () => {
  const { value } = readMetrics(await make().metrics.text());
  assert.equal(value("queen_mesh_peer_messages_sent_total", { peer: "b:6633" }), 5);
  assert.equal(value("queen_mesh_peer_messages_queued", { peer: "b:6633" }), 2);
  assert.equal(value("queen_mesh_peer_messages_coalesced_total", { peer: "b:6633" }), 1);
  assert.equal(value("queen_mesh_peer_connected", { peer: "b:6633" }), 1);
  assert.equal(value("queen_mesh_peer_connected", { peer: "c:6633" }), 0);
  assert.equal(value("queen_mesh_peer_messages_dropped_total", { peer: "c:6633" }), 7);
  assert.equal(value("queen_mesh_messages_received_total"), 9);
  assert.equal(value("queen_mesh_handshake_failures_total"), 3);
  assert.equal(value("queen_mesh_servers", { state: "alive" }), 1);
  assert.equal(value("queen_mesh_servers", { state: "dead" }), 2);
});

Deno.test("where there is no mesh, no pool and no spool, nothing is told of them but zeros", async () => {
  const { metrics } = make({ meshStats: () => ({ enabled: false, reason: "no_peers" }) });
  const { series } = readMetrics(await metrics.text());
  const told = series.filter(({ name }) => /peer|servers|postgres|spool/.test(name));
  assert.deepEqual(told.filter(({ value, labels }) => value !== 0 || "peer" in labels), []);
});

Deno.test("the spool's depth and age, the pool and the hot list are told as they stand", async () => {
  let pendingCount = 4;
  const { metrics } = make({
    spool: () => ({ pendingCount, oldestAgeMs: pendingCount > 0 ? 1500 : undefined }),
    pool: () => ({ size: 10, busy: 3, idle: 2, waiting: 1 }),
    hotList: () => ({ rings: 2, bytes: 3000, refused: 1, hintsDropped: 5 }),
  });
  const { value } = readMetrics(await metrics.text());
  assert.equal(value("queen_mesh_spool_records"), 4);
  assert.equal(value("queen_mesh_spool_oldest_age_seconds"), 1.5);
  assert.equal(value("queen_mesh_postgres_connections", { state: "busy" }), 3);
  assert.equal(value("queen_mesh_postgres_connections", { state: "idle" }), 2);
  assert.equal(value("queen_mesh_postgres_connections_max"), 10);
  assert.equal(value("queen_mesh_postgres_calls_waiting"), 1);
  assert.equal(value("queen_mesh_hot_list_rings"), 2);
  assert.equal(value("queen_mesh_hot_list_bytes"), 3000);
  assert.equal(value("queen_mesh_hot_list_refused_total"), 1);
  assert.equal(value("queen_mesh_hot_list_hints_dropped_total"), 5);
  pendingCount = 0;
  assert.equal(readMetrics(await metrics.text()).value("queen_mesh_spool_oldest_age_seconds"), 0);
});

Deno.test("wakes are told by what they found", async () => {
  const { metrics } = make({
    parkedCount: () => 6,
    popCounts: () => ({ ...NO_POPS, wakeQueries: 5, repliesByWake: 3, emptyByTimeout: 2 }),
  });
  const { value } = readMetrics(await metrics.text());
  assert.equal(value("queen_mesh_pops_parked"), 6);
  assert.equal(value("queen_mesh_pop_queries_total", { cause: "wake" }), 5);
  assert.equal(value("queen_mesh_pop_query_hits_total", { cause: "wake" }), 3);
  assert.equal(value("queen_mesh_pops_timed_out_total"), 2);
});

Deno.test("latencies are told in seconds", async () => {
  const { clock, metrics } = make();
  const stops = [metrics.startPush(), metrics.startPopQuery(), metrics.startWake()];
  await clock.advance(20);
  for (const stop of stops) stop();
  const { value } = readMetrics(await metrics.text());
  for (const name of ["push", "pop", "wake"]) {
    assert.equal(value(`queen_mesh_${name}_duration_seconds_sum`), 0.02);
    assert.equal(value(`queen_mesh_${name}_duration_seconds_count`), 1);
    assert.equal(value(`queen_mesh_${name}_duration_seconds_bucket`, { le: "0.01" }), 0);
    assert.equal(value(`queen_mesh_${name}_duration_seconds_bucket`, { le: "0.025" }), 1);
  }
});

Deno.test("two replicas of one process share no figures", async () => {
  const [one, other] = [make(), make()];
  one.metrics.countPush([{ status: "queued" }]);
  const { value } = readMetrics(await other.metrics.text());
  assert.equal(value("queen_mesh_pushed_messages_total", { outcome: "queued" }), 0);
});
