import assert from "node:assert/strict";
import { Mesh } from "../../mesh/mesh.ts";
import { FRAME_TYPE } from "../../protocol/frame.ts";
import { DEFAULT_TENANT } from "../../protocol/tenant.ts";
import { POP_WAIT_DEFAULTS, type PopWaitSettings } from "../backoff.ts";
import type { ReplicaConfig } from "../config.ts";
import type { PopQuery } from "../store/store.ts";
import { Cluster } from "../testing/cluster.ts";
import { HandListener, HandPeer } from "../testing/hand_peer.ts";
import type { Reply } from "../testing/http_bench.ts";
import type { MemoryHttp } from "../testing/memory_http.ts";

const HOUR_MS = 3_600_000;

/** So long that no reseed is seen in a test that does not wait for one. */
const ONE_HOUR = { enabled: true, reseedMs: HOUR_MS, idleSweepMs: 2 * HOUR_MS };

const NO_POLLS: PopWaitSettings = {
  initialMs: HOUR_MS,
  threshold: 0,
  multiplier: 1,
  maxMs: HOUR_MS,
};

/** One replica with the peer `x`, which is spoken by hand. */
async function alone(cluster: Cluster, changes: Partial<ReplicaConfig> = {}): Promise<MemoryHttp> {
  const config = { hotList: ONE_HOUR, ...changes };
  const { replica, http } = cluster.make("b", ["x"], NO_POLLS, config);
  await cluster.run(replica.start());
  await cluster.pass(1000);
  return http;
}

/** Two replicas that do not know each other. */
async function strangers(
  cluster: Cluster,
  hotList: ReplicaConfig["hotList"],
): Promise<[MemoryHttp, MemoryHttp]> {
  const [a, b] = ["a", "b"].map((name) =>
    cluster.make(name, [], POP_WAIT_DEFAULTS, hotList && { hotList })
  );
  await cluster.run(Promise.all([a!.replica.start(), b!.replica.start()]));
  return [a!.http, b!.http];
}

/** The queries that reach the store from here on. */
function watchQueries({ store }: Cluster): PopQuery[] {
  const queries: PopQuery[] = [];
  const pop = store.pop.bind(store);
  store.pop = (tenant, query) => {
    queries.push(query);
    return pop(tenant, query);
  };
  return queries;
}

async function push(cluster: Cluster, http: MemoryHttp, ...partitions: string[]): Promise<void> {
  const items = partitions.map((partition) => ({ queue: "q", partition, payload: 1 }));
  const { status } = await cluster.run(http.call("/api/v1/push", { body: { items } }));
  assert.equal(status, 201);
}

async function pop(cluster: Cluster, http: MemoryHttp, query = ""): Promise<Reply> {
  return await cluster.run(http.call(`/api/v1/pop/queue/q?${query}`));
}

/** Polls, so that there is a ring, and lets it be seeded. */
async function makeRing(cluster: Cluster, http: MemoryHttp, query = ""): Promise<void> {
  assert.equal((await pop(cluster, http, query)).status, 204);
  await cluster.pass(10);
}

async function park(cluster: Cluster, http: MemoryHttp): Promise<[Promise<Reply>]> {
  const reply = http.call("/api/v1/pop/queue/q?wait=true&timeout=300000");
  await cluster.pass(10);
  return [reply];
}

async function wakeQueries(http: MemoryHttp): Promise<number> {
  return (await http.call("/internal/api/shared-state/stats")).body.waker.wake_queries;
}

Deno.test("a push marks its partition before it wakes, so that the woken pop tries it first", async () => {
  await using cluster = new Cluster();
  const http = await alone(cluster);
  const [reply] = await park(cluster, http);
  const queries = watchQueries(cluster);
  await push(cluster, http, "p");
  assert.equal((await cluster.run(reply)).body.partition, "p");
  assert.deepEqual(queries.map(({ candidates }) => candidates), [["p"]]);
});

for (
  const [name, frame] of [
    ["available", { type: FRAME_TYPE.MESSAGE_AVAILABLE, item: true }],
    ["available batch", { type: FRAME_TYPE.MESSAGE_AVAILABLE_BATCH, item: false }],
    ["dirty batch", { type: FRAME_TYPE.HOTLIST_DIRTY_BATCH, item: false }],
  ] as const
) {
  Deno.test(`a frame of the type ${name} marks the partitions that it names`, async () => {
    await using cluster = new Cluster();
    const http = await alone(cluster);
    await makeRing(cluster, http);
    const peer = await HandPeer.dial(cluster, "b");
    const item = { queue: "q", partition: "p", tenant: DEFAULT_TENANT };
    await peer.send({ type: frame.type, payload: frame.item ? item : { items: [item] } });
    const queries = watchQueries(cluster);
    await pop(cluster, http);
    assert.deepEqual(queries[0]?.candidates, ["p"]);
    peer.close();
  });
}

Deno.test("a dirty hint wakes nobody", async () => {
  await using cluster = new Cluster();
  const http = await alone(cluster);
  const [reply] = await park(cluster, http);
  const peer = await HandPeer.dial(cluster, "b");
  const item = { queue: "q", partition: "p", tenant: DEFAULT_TENANT };
  await peer.send({ type: FRAME_TYPE.HOTLIST_DIRTY_BATCH, payload: { items: [item] } });
  assert.equal(await wakeQueries(http), 0);
  await push(cluster, http, "p");
  assert.equal((await cluster.run(reply)).status, 200);
  peer.close();
});

Deno.test("a dirty hint for one group marks the ring of that group alone", async () => {
  await using cluster = new Cluster();
  const http = await alone(cluster);
  await makeRing(cluster, http);
  await makeRing(cluster, http, "consumerGroup=g");
  const peer = await HandPeer.dial(cluster, "b");
  const item = { queue: "q", partition: "p", tenant: DEFAULT_TENANT, group: "g" };
  await peer.send({ type: FRAME_TYPE.HOTLIST_DIRTY_BATCH, payload: { items: [item] } });
  const queries = watchQueries(cluster);
  await pop(cluster, http);
  await pop(cluster, http, "consumerGroup=g");
  assert.deepEqual(queries.map(({ candidates }) => candidates), [undefined, ["p"]]);
  peer.close();
});

Deno.test("a thousand pushes to one partition in one flush window put one hint on the wire", async () => {
  await using cluster = new Cluster();
  const listener = await HandListener.bind(cluster, "x");
  const http = await alone(cluster);
  const items = [{ queue: "q", partition: "p", payload: 1 }];
  await cluster.run(
    Promise.all(
      Array.from({ length: 1000 }, () => http.call("/api/v1/push", { body: { items } })),
    ),
  );
  await cluster.pass(1000);
  const expected = [{ queue: "q", partition: "p", tenant: DEFAULT_TENANT }];
  assert.deepEqual(listener.dirtyItems(), expected);
  // The next window has one of its own.
  await push(cluster, http, "p");
  await cluster.pass(1000);
  assert.deepEqual(listener.dirtyItems(), [...expected, ...expected]);
  listener.close();
});

Deno.test("50 000 partitions with names of 300 characters leave as frames that no peer refuses", async () => {
  await using cluster = new Cluster();
  const { replica, http } = cluster.make("b", ["x"], NO_POLLS, {
    hotList: ONE_HOUR,
    maxBodyBytes: 64 * 1024 * 1024,
  });
  const dirty = new Set<string>();
  const peer = new Mesh({
    runtime: cluster.network.host("x").runtime,
    config: { serverId: "x", peers: [{ host: "b", port: 6633 }] },
    onMessage(message) {
      if (message.type !== "hotlist_dirty") return;
      for (const { partition } of message.items) dirty.add(partition);
    },
  });
  await cluster.run(Promise.all([replica.start(), peer.start()]));
  await cluster.pass(1000);
  const names = Array.from({ length: 50_000 }, (_, i) => `${i}-`.padEnd(300, "x"));
  // All at once, with what announces them, is more than may wait for one peer.
  for (const half of [names.slice(0, 25_000), names.slice(25_000)]) {
    await push(cluster, http, ...half);
    await cluster.pass(5000);
  }
  assert.equal(dirty.size, 50_000);
  const { body } = await http.call("/internal/api/shared-state/stats");
  assert.equal(body.peers[0].connected, true);
  assert.equal(body.messages_dropped, 0);
  await cluster.run(peer.close());
});

Deno.test("without a mesh and with a reseed of one hour, a wake comes within the greatest interval", async () => {
  await using cluster = new Cluster();
  const [a, b] = await strangers(cluster, ONE_HOUR);
  const [reply] = await park(cluster, b);
  // Long enough for the waits between polls to have become as long as they get.
  await cluster.pass(30_000);
  await push(cluster, a, "p");
  const pushedAt = cluster.network.clock.now();
  assert.equal((await cluster.run(reply)).body.partition, "p");
  // A query takes two milliseconds.
  assert(cluster.network.clock.now() - pushedAt <= POP_WAIT_DEFAULTS.maxMs + 2);
});

Deno.test("a dirty hint that was lost is healed by the reseed", async () => {
  await using cluster = new Cluster();
  const [a, b] = await strangers(cluster, {
    enabled: true,
    reseedMs: 30_000,
    idleSweepMs: HOUR_MS,
  });
  await makeRing(cluster, b);
  await push(cluster, a, "p");
  await cluster.pass(30_010);
  const queries = watchQueries(cluster);
  await pop(cluster, b);
  assert.deepEqual(queries[0]?.candidates, ["p"]);
});

Deno.test("a batch that was given back is a candidate again", async () => {
  await using cluster = new Cluster();
  const http = await alone(cluster);
  await makeRing(cluster, http);
  await push(cluster, http, "p");
  const completed = Promise.reject(new Error("connection reset"));
  await cluster.run(http.call("/api/v1/pop/queue/q", { completed }));
  await cluster.pass(10);
  const queries = watchQueries(cluster);
  assert.equal((await pop(cluster, http)).status, 200);
  assert.deepEqual(queries[0]?.candidates, ["p"]);
});

Deno.test("what an ack leaves in a partition makes it a candidate again", async () => {
  await using cluster = new Cluster();
  const http = await alone(cluster);
  await makeRing(cluster, http);
  await push(cluster, http, "p", "p");
  const { body } = await pop(cluster, http, "batch=1");
  const { messages: [{ transactionId }], partitionId, leaseId } = body;
  await cluster.run(
    http.call("/api/v1/ack", { body: { transactionId, partitionId, leaseId } }),
  );
  const queries = watchQueries(cluster);
  assert.equal((await pop(cluster, http)).status, 200);
  assert.deepEqual(queries[0]?.candidates, ["p"]);
});

Deno.test("a pop of one partition asks for no candidates", async () => {
  await using cluster = new Cluster();
  const http = await alone(cluster);
  await makeRing(cluster, http);
  await push(cluster, http, "p");
  const queries = watchQueries(cluster);
  await cluster.run(http.call("/api/v1/pop/queue/q/partition/p"));
  assert.equal(queries[0]?.candidates, undefined);
});

Deno.test("a queue that a peer has deleted has no ring any more", async () => {
  await using cluster = new Cluster();
  const http = await alone(cluster);
  await makeRing(cluster, http);
  const rings = async () =>
    /^queen_mesh_hot_list_rings (\d+)$/m.exec((await http.call("/metrics")).text)?.[1];
  assert.equal(await rings(), "1");
  const peer = await HandPeer.dial(cluster, "b");
  const payload = { queue: "q", tenant: DEFAULT_TENANT };
  await peer.send({ type: FRAME_TYPE.QUEUE_CONFIG_DELETE, payload });
  assert.equal(await rings(), "0");
  peer.close();
});

Deno.test("with the hot list off there are no candidates and no hints, and everything still works", async () => {
  await using cluster = new Cluster();
  const listener = await HandListener.bind(cluster, "x");
  const http = await alone(cluster, { hotList: { ...ONE_HOUR, enabled: false } });
  const [reply] = await park(cluster, http);
  const queries = watchQueries(cluster);
  await push(cluster, http, "p", "other");
  assert.equal((await cluster.run(reply)).status, 200);
  assert.equal((await pop(cluster, http)).status, 200);
  await cluster.pass(1000);
  assert.deepEqual(queries.map(({ candidates }) => candidates), [undefined, undefined]);
  assert.deepEqual(listener.dirtyItems(), []);
  assert.equal(listener.payloads(FRAME_TYPE.MESSAGE_AVAILABLE_BATCH).length, 1);
  listener.close();
});

Deno.test("a replica that closes leaves no ring and no hint behind", async () => {
  await using cluster = new Cluster();
  const { replica, http } = cluster.make("b", ["x"], NO_POLLS);
  await cluster.run(replica.start());
  await makeRing(cluster, http);
  await push(cluster, http, "p");
  await cluster.run(replica.close());
  assert.equal(cluster.network.clock.pending, 0);
});
