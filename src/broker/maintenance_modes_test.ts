import assert from "node:assert/strict";
import { MESH_DEFAULTS } from "../mesh/config.ts";
import { Mesh } from "../mesh/mesh.ts";
import { HttpBench } from "./testing/http_bench.ts";
import { flip, spooledCluster } from "./testing/spooled_cluster.ts";

const MAINTENANCE = "/api/v1/system/maintenance";

Deno.test("a flip is told to the peers, and every replica spools its pushes", async () => {
  await using cluster = spooledCluster();
  const [a, b] = await cluster.pair();
  const { status, body } = await flip(a, true);
  assert.equal(status, 200);
  assert.equal(typeof body.message, "string");
  assert.deepEqual([body.maintenanceMode, body.bufferedMessages, body.bufferHealthy], [
    true,
    0,
    true,
  ]);
  await cluster.pass(20);
  assert.deepEqual(await a.push("p"), ["buffered"]);
  assert.deepEqual(await b.push("p", "p"), ["buffered", "buffered"]);
  await cluster.pass(10_000);
  assert.deepEqual(cluster.stored, []);
  const { body: overview } = await b.call(MAINTENANCE);
  assert.deepEqual(overview, {
    maintenanceMode: true,
    popMaintenanceMode: false,
    bufferedMessages: 2,
    bufferHealthy: true,
    bufferStats: {
      pendingCount: 2,
      failedCount: 0,
      dbHealthy: true,
      failedFiles: { count: 0, totalBytes: 0 },
    },
  });
  const stats = (await b.call("/internal/api/shared-state/stats")).body;
  assert.deepEqual([stats.maintenance_mode, stats.pop_maintenance_mode], [true, false]);
});

Deno.test("once maintenance is off every spool drains in order and wakes pops, also on peers", async () => {
  await using cluster = spooledCluster();
  const [a, b] = await cluster.pair();
  await flip(a, true);
  await cluster.pass(20);
  await a.push("p", "p", "p");
  const waiting = b.http.call("/api/v1/pop/queue/q?wait=true&timeout=200000");
  await cluster.pass(100);
  await flip(a, false);
  await cluster.pass(1500);
  const { body } = await waiting;
  assert.deepEqual(body.messages.map((message: { data: number }) => message.data), [1, 2, 3]);
  assert.deepEqual(cluster.stored, ["1", "2", "3"]);
  assert.deepEqual(await a.push("p"), ["queued"]);
  assert.equal((await a.call(MAINTENANCE)).body.bufferedMessages, 0);
});

Deno.test("acks and pops work under maintenance", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a");
  await a.push("p");
  await flip(a, true);
  const { body } = await a.call("/api/v1/pop/queue/q");
  const [{ transactionId, partitionId, leaseId }] = body.messages;
  const ack = await a.call("/api/v1/ack", { body: { transactionId, partitionId, leaseId } });
  assert.equal(ack.body[0].success, true);
});

Deno.test("under pop maintenance pops are answered empty, and those that wait stay until their timeout", async () => {
  await using cluster = spooledCluster();
  const [a, b] = await cluster.pair();
  await a.push("p");
  const { body } = await flip(a, true, "/pop");
  assert.equal(body.popMaintenanceMode, true);
  assert.equal(typeof body.message, "string");
  await cluster.pass(20);
  const popCount = cluster.store.popCount;
  for (const replica of [a, b]) {
    assert.equal((await replica.call("/api/v1/pop/queue/q")).status, 204);
  }
  let isAnswered = false;
  const waiting = b.http.call("/api/v1/pop/queue/q?wait=true&timeout=5000").finally(() => {
    isAnswered = true;
  });
  await cluster.pass(4900);
  assert.equal(isAnswered, false);
  await cluster.pass(200);
  assert.equal((await waiting).status, 204);
  assert.equal(cluster.store.popCount, popCount);
  assert.deepEqual(await a.push("p"), ["queued"]);
});

Deno.test("a group whose first pop comes under pop maintenance starts at that moment", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a");
  await a.call("/api/v1/configure", { body: { queue: "q", namespace: "n" } });
  await a.push("p");
  await flip(a, true, "/pop");
  const pops = ["/queue/q?consumerGroup=g", "?namespace=n&consumerGroup=h"];
  for (const pop of pops) assert.equal((await a.call(`/api/v1/pop${pop}`)).status, 204);
  await a.push("p");
  await flip(a, false, "/pop");
  for (const pop of pops) {
    const { body } = await a.call(`/api/v1/pop${pop}`);
    assert.deepEqual(body.messages.map((message: { data: number }) => message.data), [2]);
  }
});

Deno.test("a first pop under pop maintenance says so where its group could not begin", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a");
  await flip(a, true, "/pop");
  cluster.store.isAway = true;
  assert.equal((await a.call("/api/v1/pop/queue/q?consumerGroup=g")).status, 503);
  assert.equal((await a.call("/api/v1/pop/queue/q")).status, 204);
});

Deno.test("pop maintenance that ends wakes all who wait, on every replica", async () => {
  await using cluster = spooledCluster();
  const [a, b] = await cluster.pair();
  await flip(a, true, "/pop");
  await cluster.pass(20);
  await a.push("p", "q", "r");
  const waiting = [a, b, b].map(({ http }) => http.call("/api/v1/pop/queue/q?wait=true"));
  await cluster.pass(1000);
  await flip(b, false, "/pop");
  await cluster.pass(100);
  for (const reply of await Promise.all(waiting)) assert.equal(reply.status, 200);
});

Deno.test("a flip that PostgreSQL does not take is applied nowhere, and the reply says so", async () => {
  await using cluster = spooledCluster();
  const [a, b] = await cluster.pair();
  cluster.store.isAway = true;
  const { status, body } = await flip(a, true);
  assert.equal(status, 503);
  assert.equal(typeof body.error, "string");
  await cluster.pass(100);
  cluster.store.isAway = false;
  for (const { call } of [a, b]) {
    assert.equal((await call(MAINTENANCE)).body.maintenanceMode, false);
  }
});

Deno.test("a flip whose frame is lost is found by the next reconcile", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a");
  const b = await cluster.start("b", { cacheRefreshMs: 60_000 });
  await flip(a, true);
  assert.deepEqual(await b.push("p"), ["queued"]);
  await cluster.pass(60_000);
  assert.deepEqual(await b.push("p"), ["buffered"]);
  await flip(a, false);
  await cluster.pass(60_100);
  assert.deepEqual(cluster.stored, ["1", "2"]);
});

Deno.test("opposite flips on two replicas at once end the same on both", async () => {
  for (const first of [true, false]) {
    await using cluster = spooledCluster();
    const [a, b] = await cluster.pair();
    const options = (enabled: boolean) => ({ body: { enabled } });
    const flips = [a.http.call(MAINTENANCE, options(first))];
    flips.push(b.http.call(MAINTENANCE, options(!first)));
    await cluster.run(Promise.all(flips));
    await cluster.pass(100);
    const { enabled } = cluster.store.flags.maintenance;
    for (const { call } of [a, b]) {
      assert.equal((await call(MAINTENANCE)).body.maintenanceMode, enabled);
    }
  }
});

Deno.test("a forged flip changes nothing while PostgreSQL answers, and a flood costs one read at a time", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { peers: ["x"] });
  const forger = new Mesh({
    runtime: cluster.network.host("x").runtime,
    config: { ...MESH_DEFAULTS, serverId: "x", peers: [{ host: "a", port: 6633 }] },
    onMessage: () => {},
  });
  await cluster.run(forger.start());
  await cluster.pass(1000);
  const before = cluster.store.flagReadCount;
  for (let i = 0; i < 1000; i++) {
    forger.broadcast({ type: "maintenance_mode", enabled: true });
    forger.broadcast({ type: "pop_maintenance_mode", enabled: true });
  }
  await cluster.pass(100);
  const { body } = await a.call(MAINTENANCE);
  assert.deepEqual([body.maintenanceMode, body.popMaintenanceMode], [false, false]);
  assert.deepEqual(await a.push("p"), ["queued"]);
  // A read takes 2 ms here, so that no more than 50 fit.
  const reads = cluster.store.flagReadCount - before;
  assert.ok(reads >= 1 && reads <= 50, `${reads} reads`);

  cluster.store.isAway = true;
  forger.broadcast({ type: "maintenance_mode", enabled: true });
  await cluster.pass(100);
  assert.equal((await a.call(MAINTENANCE)).body.maintenanceMode, true);
  cluster.store.isAway = false;
  assert.equal((await a.call("/health")).status, 200);
  await cluster.pass(20);
  assert.equal((await a.call(MAINTENANCE)).body.maintenanceMode, false);
  await cluster.run(forger.close());
});

for (const path of [MAINTENANCE, `${MAINTENANCE}/pop`]) {
  for (const body of ["{}", '{"enabled":"true"}', '{"enabled":null}', '{"enabled":{}}']) {
    Deno.test(`${path} refuses ${body} by the text that clients know`, async () => {
      const bench = await HttpBench.started();
      const reply = await bench.call(path, { body });
      assert.deepEqual([reply.status, reply.body], [400, {
        error: "enabled (boolean) is required",
      }]);
    });
  }

  Deno.test(`${path} refuses what is no JSON`, async () => {
    const bench = await HttpBench.started();
    const reply = await bench.call(path, { body: "{" });
    assert.equal(reply.status, 400);
    assert.equal(typeof reply.body.error, "string");
  });
}
