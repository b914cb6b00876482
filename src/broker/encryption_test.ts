import assert from "node:assert/strict";
import { MESH_DEFAULTS } from "../mesh/config.ts";
import { Mesh } from "../mesh/mesh.ts";
import { fakeCipher } from "./spool/testing/fake_cipher.ts";
import {
  flip,
  KEY,
  type SpooledCluster,
  spooledCluster,
  type SpooledReplica,
} from "./testing/spooled_cluster.ts";

async function encrypt({ call }: SpooledReplica, encryptionEnabled: boolean): Promise<number> {
  const body = { queue: "q", options: { encryptionEnabled } };
  return (await call("/api/v1/configure", { body })).status;
}

/** Whether each stored message is sealed; fails where one is marked as what it is not. */
function sealed(cluster: SpooledCluster): boolean[] {
  return cluster.store.stored("q").map(({ payload, encrypted }) => {
    assert.equal(encrypted, !/^\d+$/.test(payload), payload);
    return encrypted;
  });
}

async function pop({ call }: SpooledReplica): Promise<unknown[]> {
  const { status, body } = await call("/api/v1/pop/queue/q");
  assert.equal(status, 200, JSON.stringify(body));
  return body.messages.map((message: { data: unknown }) => message.data);
}

Deno.test("messages of an encrypted queue are stored sealed and come back as they were", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  assert.equal(await encrypt(a, true), 200);
  assert.deepEqual(await a.push("p", "p"), ["queued", "queued"]);
  assert.deepEqual(sealed(cluster), [true, true]);
  assert.deepEqual(await pop(a), [1, 2]);
});

Deno.test("encryption switched on at one replica holds at another that never heard of it", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  const b = await cluster.start("b", { cipher: KEY });
  assert.deepEqual(await b.push("p"), ["queued"]);
  await encrypt(a, true);
  assert.deepEqual(await b.push("p"), ["queued"]);
  assert.deepEqual(sealed(cluster), [false, true]);
  await encrypt(a, false);
  assert.deepEqual(await b.push("p"), ["queued"]);
  assert.deepEqual(sealed(cluster), [false, true, false]);
  assert.deepEqual(await pop(b), [1, 2, 3]);
});

Deno.test("a push to several queues seals those that are misjudged, and stores nothing twice", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  const b = await cluster.start("b", { cipher: KEY });
  const items = ["q", "r", "q"].map((queue, payload) => ({ queue, payload }));
  await b.call("/api/v1/push", { body: { items } });
  await encrypt(a, true);
  const { body } = await b.call("/api/v1/push", { body: { items } });
  assert.deepEqual(body.map(({ status }: { status: string }) => status), [
    "queued",
    "queued",
    "queued",
  ]);
  assert.deepEqual(sealed(cluster), [false, false, true, true]);
  assert.equal(cluster.store.stored("r").length, 2);
});

Deno.test("what was spooled before encryption was switched on is sealed as it drains", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  const b = await cluster.start("b", { cipher: KEY, cacheRefreshMs: 10_000 });
  await b.push("p");
  await flip(a, true);
  await cluster.pass(10_000);
  assert.deepEqual(await b.push("p", "p"), ["buffered", "buffered"]);
  await encrypt(a, true);
  await flip(a, false);
  await cluster.pass(12_000);
  assert.deepEqual(sealed(cluster), [false, true, true]);
});

Deno.test("with a key nothing lies in the spool as it is", async () => {
  for (const cipher of [undefined, KEY]) {
    await using cluster = spooledCluster();
    const a = await cluster.start("a", cipher === undefined ? {} : { cipher });
    await flip(a, true);
    const items = [{ queue: "q", payload: "a secret" }];
    await a.call("/api/v1/push", { body: { items } });
    const directory = "/data/queen-spool/a";
    const text = a.files.namesIn(directory).filter((name) => name.endsWith(".segment"))
      .map((name) => new TextDecoder().decode(a.files.contentOf(`${directory}/${name}`))).join();
    assert.equal(text.includes("a secret"), cipher === undefined);
  }
});

Deno.test("without a key no queue can be encrypted, and none that is takes messages", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  const b = await cluster.start("b");
  assert.equal(await encrypt(b, true), 400);
  assert.equal(await encrypt(b, false), 200);
  await encrypt(a, true);
  const items = ["q", "r"].map((queue) => ({ queue, payload: 1 }));
  for (const other of ["queued", "buffered"]) {
    const { status, body } = await b.call("/api/v1/push", { body: { items } });
    assert.equal(status, 201);
    assert.deepEqual(body.map(({ status }: { status: string }) => status), ["failed", other]);
    assert.match(body[0].error, /QUEEN_ENCRYPTION_KEY/);
    await flip(b, true);
  }
  assert.deepEqual(cluster.store.stored("q"), []);
});

/** Pushes to `queue` and resolves to what became of it: a status of the reply, or of the item. */
async function pushTo({ call }: SpooledReplica, queue: string): Promise<string> {
  const { status, body } = await call("/api/v1/push", { body: { items: [{ queue, payload: 1 }] } });
  return status === 201 ? body[0].status : String(status);
}

Deno.test("without a key and without PostgreSQL only queues last known to be unencrypted are spooled", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  const b = await cluster.start("b", { cacheRefreshMs: 60_000 });
  for (const queue of ["used", "changed"]) assert.equal(await pushTo(b, queue), "queued");
  await b.call("/api/v1/configure", { body: { queue: "configured" } });
  await encrypt(a, true);
  await cluster.pass(60_000);
  cluster.store.isAway = true;
  for (const queue of ["used", "configured", "new"]) {
    assert.equal(await pushTo(b, queue), "buffered", queue);
  }
  assert.equal(await pushTo(b, "q"), "503");
  const items = [{ queue: "used", payload: 1 }, { queue: "q", payload: 1 }];
  const { status, body } = await b.call("/api/v1/push", { body: { items } });
  assert.equal(status, 503);
  assert.match(body.error, /"q".*QUEEN_ENCRYPTION_KEY/);
});

Deno.test("a queue that may have changed since is not known to be unencrypted", async () => {
  await using cluster = spooledCluster();
  const [, b] = await cluster.pair();
  const teller = new Mesh({
    runtime: cluster.network.host("x").runtime,
    config: { ...MESH_DEFAULTS, serverId: "x", peers: [{ host: "b", port: 6633 }] },
    onMessage: () => {},
  });
  await cluster.run(teller.start());
  await cluster.pass(1000);
  assert.equal(await pushTo(b, "q"), "queued");
  cluster.store.isAway = true;
  teller.broadcast({ type: "queue_config_set", queue: "q" });
  await cluster.pass(100);
  assert.equal(await pushTo(b, "q"), "503");
  assert.equal(await pushTo(b, "r"), "buffered");
  cluster.store.isAway = false;
  teller.broadcast({ type: "queue_config_set", queue: "q" });
  await cluster.pass(100);
  cluster.store.isAway = true;
  assert.equal(await pushTo(b, "q"), "buffered");
  await cluster.run(teller.close());
});

Deno.test("without a key nothing is spooled before PostgreSQL has been asked once", async () => {
  await using cluster = spooledCluster();
  cluster.store.isAway = true;
  const a = await cluster.start("a");
  assert.equal(await pushTo(a, "q"), "503");
  cluster.store.isAway = false;
  await cluster.pass(11_000);
  cluster.store.isAway = true;
  assert.equal(await pushTo(a, "q"), "buffered");
});

Deno.test("a restart without PostgreSQL remembers which queues are encrypted", async () => {
  await using cluster = spooledCluster();
  const keeper = await cluster.start("keeper", { cipher: KEY });
  await encrypt(keeper, true);
  const before = await cluster.start("a");
  await cluster.run(before.replica.close());
  cluster.store.isAway = true;
  const after = await cluster.start("a", { spool: { fileSystem: before.files.restart() } });
  assert.equal(await pushTo(after, "r"), "buffered");
  assert.equal(await pushTo(after, "q"), "503");
});

Deno.test("a disk that does not keep which queues are encrypted is reported, and no more", async () => {
  await using cluster = spooledCluster();
  const { replica, files, ...a } = cluster.make("a");
  files.fault = (operation, path) =>
    operation === "create" && path.endsWith(".json") ? "ENOSPC" : undefined;
  await cluster.run(replica.start());
  assert.equal(cluster.logger.entries.filter(({ level }) => level === "warn").length, 1);
  assert.equal(await pushTo({ replica, files, ...a }, "q"), "queued");
});

Deno.test("messages that cannot be opened are given back and shown to nobody", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  await encrypt(a, true);
  await a.push("p");
  const strangers = [
    await cluster.start("without"),
    await cluster.start("other", { cipher: fakeCipher(9) }),
  ];
  for (const stranger of strangers) {
    const { status, body } = await stranger.call("/api/v1/pop/queue/q");
    assert.equal(status, 503);
    assert.match(body.error, /QUEEN_ENCRYPTION_KEY/);
  }
  assert.equal(cluster.store.leaseCount, 0);
  assert.equal((await strangers[0]!.call("/api/v1/pop/queue/q?autoAck=true")).status, 503);
  assert.deepEqual(await pop(a), [1]);
});

Deno.test("a pop of several partitions leaves out those that cannot be opened", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  const b = await cluster.start("b");
  await b.push("p", "q");
  await encrypt(a, true);
  await a.push("q");
  const { status, body } = await b.call("/api/v1/pop/queue/q?partitions=5");
  assert.equal(status, 200);
  assert.deepEqual(body.messages.map((message: { data: unknown }) => message.data), [1]);
  assert.equal(cluster.store.leaseCount, 1);
});

Deno.test("a configuration whose frame is lost is known after the next reconcile", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  const b = await cluster.start("b", { cacheRefreshMs: 60_000 });
  assert.equal(await pushTo(b, "q"), "queued");
  await flip(b, true);
  assert.equal(await pushTo(b, "q"), "buffered");
  await encrypt(a, true);
  await cluster.pass(60_000);
  assert.equal(await pushTo(b, "q"), "failed");
});
