import assert from "node:assert/strict";
import { MESH_DEFAULTS } from "../mesh/config.ts";
import { Mesh } from "../mesh/mesh.ts";
import { POP_WAIT_DEFAULTS } from "./backoff.ts";
import { Cluster } from "./testing/cluster.ts";
import type { Reply } from "./testing/http_bench.ts";
import type { MemoryHttp } from "./testing/memory_http.ts";

async function push(cluster: Cluster, http: MemoryHttp, ...partitions: string[]): Promise<Reply> {
  const items = partitions.map((partition) => ({ queue: "q", partition, payload: 1 }));
  return await cluster.run(http.call("/api/v1/push", { body: { items } }));
}

async function waker(http: MemoryHttp): Promise<Record<string, number>> {
  return (await http.call("/internal/api/shared-state/stats")).body.waker;
}

/** Parks `count` pops and leaves their replies to come. */
async function park(cluster: Cluster, http: MemoryHttp, count: number): Promise<Promise<Reply>[]> {
  const replies = Array.from({ length: count }, () => http.call("/api/v1/pop/queue/q?wait=true"));
  await cluster.pass(10);
  return replies;
}

Deno.test("a push on one replica wakes a pop parked on another", async () => {
  await using cluster = new Cluster();
  const [a, b] = await cluster.pair();
  const [reply] = await park(cluster, b, 1);
  await push(cluster, a, "p");
  await cluster.pass(20);
  assert.equal((await reply!).body.partition, "p");
  const { replies_by_wake, poll_queries } = await waker(b);
  assert.deepEqual([replies_by_wake, poll_queries], [1, 0]);
});

Deno.test("a hundred pops parked on one replica and one push on another make one query", async () => {
  await using cluster = new Cluster();
  const [a, b] = await cluster.pair();
  await park(cluster, b, 100);
  await push(cluster, a, "p");
  await cluster.pass(100);
  const { wake_queries, poll_queries, parked } = await waker(b);
  assert.deepEqual([wake_queries, poll_queries, parked], [1, 0, 99]);
});

Deno.test("a push of a hundred partitions on one replica releases a hundred pops on another", async () => {
  await using cluster = new Cluster();
  const [a, b] = await cluster.pair();
  const replies = await park(cluster, b, 100);
  await push(cluster, a, ...Array.from({ length: 100 }, (_, i) => `p${i}`));
  await cluster.pass(100);
  for (const reply of await Promise.all(replies)) assert.equal(reply.status, 200);
  const { replies_by_wake, poll_queries } = await waker(b);
  assert.deepEqual([replies_by_wake, poll_queries], [100, 0]);
});

Deno.test("without the mesh a parked pop returns within its backoff", async () => {
  await using cluster = new Cluster();
  const a = cluster.make("a", [], POP_WAIT_DEFAULTS);
  const b = cluster.make("b", [], POP_WAIT_DEFAULTS);
  await cluster.run(Promise.all([a.replica.start(), b.replica.start()]));
  const [reply] = await park(cluster, b.http, 1);
  await push(cluster, a.http, "p");
  await cluster.pass(POP_WAIT_DEFAULTS.maxMs + 10);
  assert.equal((await reply!).status, 200);
  assert.equal((await waker(b.http))["replies_by_poll"], 1);
});

Deno.test("a message given back on one replica wakes a pop parked on another", async () => {
  await using cluster = new Cluster();
  const [a, b] = await cluster.pair();
  await push(cluster, a, "p");
  let lose: (error: Error) => void = () => {};
  const completed = new Promise<void>((_, reject) => {
    lose = reject;
  });
  await cluster.run(a.call("/api/v1/pop/queue/q", { completed }));
  const [reply] = await park(cluster, b, 1);
  lose(new Error("connection reset"));
  await cluster.pass(20);
  assert.equal((await reply!).status, 200);
  assert.equal((await waker(b))["replies_by_wake"], 1);
});

Deno.test("a pop by namespace on one replica finds a queue that is configured and pushed to on another", async () => {
  await using cluster = new Cluster();
  const [a, b] = await cluster.pair();
  const reply = b.call("/api/v1/pop?namespace=n&wait=true");
  await cluster.pass(10);
  await cluster.run(a.call("/api/v1/configure", { body: { queue: "q", namespace: "n" } }));
  await cluster.pass(20);
  await push(cluster, a, "p");
  await cluster.pass(20);
  assert.equal((await reply).body.queue, "q");
  assert.equal((await waker(b))["poll_queries"], 0);
});

Deno.test("a hint for another tenant wakes nobody", async () => {
  await using cluster = new Cluster();
  const { replica, http } = cluster.make("b", ["x"]);
  await cluster.run(replica.start());
  await park(cluster, http, 1);
  const stranger = new Mesh({
    runtime: cluster.network.host("x").runtime,
    config: { ...MESH_DEFAULTS, serverId: "x", peers: [{ host: "b", port: 6633 }] },
    onMessage: () => {},
  });
  await cluster.run(stranger.start());
  await cluster.pass(1000);
  const hint = { queue: "q", partition: "p" };
  const tenant = "aaaaaaaa-0000-0000-0000-000000000001";
  stranger.broadcast({ type: "message_available", items: [{ ...hint, tenant }] });
  await cluster.pass(10);
  assert.equal((await waker(http))["wake_queries"], 0);
  stranger.broadcast({ type: "message_available", items: [hint] });
  await cluster.pass(10);
  assert.equal((await waker(http))["wake_queries"], 1);
  await cluster.run(stranger.close());
});

Deno.test("the statistics of a replica in a mesh name it and its peers", async () => {
  await using cluster = new Cluster();
  const [a] = await cluster.pair();
  const { body } = await a.call("/internal/api/inter-instance/stats");
  assert.equal(body.enabled, true);
  assert.equal(body.server_id, "a");
  assert.equal(body.peers[0].connected, true);
  assert.equal(body.maintenance_mode, false);
  assert.equal(body.waker.parked, 0);
});

Deno.test("PostgreSQL away at the start does not stop the start", async () => {
  await using cluster = new Cluster();
  cluster.store.isAway = true;
  const { replica, http } = cluster.make("a", []);
  await cluster.run(replica.start());
  assert.equal((await http.call("/health")).status, 503);
  assert.equal((await http.call("/status")).status, 200);
  assert.equal((await push(cluster, http, "p")).status, 503);
  cluster.store.isAway = false;
  await cluster.pass(5000);
  assert.equal((await cluster.run(http.call("/health"))).status, 200);
  assert.equal((await push(cluster, http, "p")).status, 201);
});

Deno.test("an HTTP port that cannot be bound fails the start and leaves nothing", async () => {
  await using cluster = new Cluster();
  const { replica, http } = cluster.make("a", ["b"]);
  http.refusal = new Error("port 6632 is in use");
  await assert.rejects(cluster.run(replica.start()), http.refusal);
  assert.equal(cluster.store.isClosed, true);
  assert.equal(cluster.network.clock.pending, 0);
});

Deno.test("a schema that is refused fails the start and leaves nothing", async () => {
  await using cluster = new Cluster();
  cluster.store.migrationError = new Error("the schema is newer than this program");
  const { replica, http } = cluster.make("a", ["b"]);
  await assert.rejects(cluster.run(replica.start()), cluster.store.migrationError);
  assert.equal(http.isBound, false);
  assert.equal(cluster.store.isClosed, true);
  assert.equal(cluster.network.clock.pending, 0);
});

Deno.test("a replica that closes answers the pops that wait and leaves nothing", async () => {
  await using cluster = new Cluster();
  const { replica, http } = cluster.make("a", ["b"]);
  await cluster.run(replica.start());
  assert.equal(replica.port, 6632);
  const replies = await park(cluster, http, 3);
  await cluster.run(replica.close());
  for (const reply of await Promise.all(replies)) assert.equal(reply.status, 204);
  assert.equal(replica.port, undefined);
  assert.equal(replica.meshPort, undefined);
  assert.equal(http.isBound, false);
  assert.equal(cluster.store.isClosed, true);
  assert.equal(cluster.network.clock.pending, 0);
});

Deno.test("a replica that is closed while it starts leaves nothing", async () => {
  await using cluster = new Cluster();
  cluster.store.isAway = true;
  const { replica } = cluster.make("a", ["b"]);
  const starting = replica.start();
  await cluster.run(Promise.all([starting, replica.close()]));
  assert.equal(cluster.network.clock.pending, 0);
});
