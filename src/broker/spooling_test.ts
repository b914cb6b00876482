import assert from "node:assert/strict";
import { SpoolInUseError } from "./spool/errors.ts";
import {
  type PushItem,
  type PushResult,
  type SpooledBatch,
  type SpooledResult,
  StoreUnavailableError,
  type TenantId,
} from "./store/store.ts";
import { FakeStore } from "./testing/fake_store.ts";
import { flip, KEY, SpooledCluster, spooledCluster } from "./testing/spooled_cluster.ts";

/** A store whose answers get lost, or which takes nothing from spools. */
class TroubledStore extends FakeStore {
  /** Pushes are stored, and nobody hears of it. */
  losesAnswers = false;
  /** Nothing that was spooled is taken. */
  refusesSpools = false;
  /** What is taken of a spool waits for this. */
  gate: Promise<void> = Promise.resolve();

  override async push(tenant: TenantId, items: readonly PushItem[]): Promise<PushResult> {
    const result = await super.push(tenant, items);
    if (this.losesAnswers) throw new StoreUnavailableError("the connection was lost");
    return result;
  }

  override async storeSpooled(batch: SpooledBatch): Promise<SpooledResult> {
    if (this.refusesSpools) throw new StoreUnavailableError("not now");
    await this.gate;
    return await super.storeSpooled(batch);
  }
}

function troubledCluster(): SpooledCluster<TroubledStore> {
  return new SpooledCluster((options) => new TroubledStore(options));
}

Deno.test("while PostgreSQL is away pushes are buffered, and pops, acks and health answer 503", async () => {
  await using cluster = spooledCluster();
  const [a, b] = await cluster.pair();
  await a.push("p");
  await cluster.pass(100);
  assert.equal((await b.call("/api/v1/pop/queue/q")).status, 200);
  const waiting = b.http.call("/api/v1/pop/queue/q?wait=true&timeout=200000");
  await cluster.pass(100);
  cluster.store.isAway = true;
  assert.deepEqual(await a.push("q", "q"), ["buffered", "buffered"]);
  assert.deepEqual(await a.push("q"), ["buffered"]);
  const ack = { transactionId: "t", partitionId: "p" };
  for (
    const { status, body } of [
      await a.call("/api/v1/pop/queue/q"),
      await a.call("/api/v1/ack", { body: ack }),
      await a.call("/health"),
    ]
  ) {
    assert.equal(status, 503);
    assert.equal(typeof body.error, "string");
  }
  assert.equal((await a.call("/status")).status, 200);
  const away = (await a.call("/api/v1/system/maintenance")).body;
  assert.deepEqual([away.bufferedMessages, away.bufferStats.dbHealthy, away.bufferHealthy], [
    3,
    false,
    true,
  ]);
  await cluster.pass(10_000);
  cluster.store.isAway = false;
  await cluster.pass(6000);
  assert.deepEqual(cluster.stored, ["1", "2", "3", "4"]);
  const { body } = await waiting;
  assert.deepEqual(body.messages.map((message: { data: number }) => message.data), [2, 3, 4]);
  assert.deepEqual(await a.push("q"), ["queued"]);
  const back = (await a.call("/api/v1/system/maintenance")).body;
  assert.deepEqual([back.bufferedMessages, back.bufferStats.dbHealthy], [0, true]);
});

Deno.test("the first answer of PostgreSQL lets the spool drain, without waiting for its next attempt", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  cluster.store.isAway = true;
  await a.push("p");
  await cluster.pass(60_000);
  cluster.store.isAway = false;
  assert.equal((await a.call("/health")).status, 200);
  await cluster.pass(20);
  assert.deepEqual(cluster.stored, ["1"]);
});

Deno.test("a push whose outcome is unknown is buffered under the same ids, and stored once", async () => {
  await using cluster = troubledCluster();
  const a = await cluster.start("a", { cipher: KEY });
  cluster.store.losesAnswers = true;
  const item = { queue: "q", partition: "p", payload: 1 };
  const { body } = await a.call("/api/v1/push", { body: { items: [item] } });
  assert.equal(body[0].status, "buffered");
  cluster.store.losesAnswers = false;
  await cluster.pass(10_000);
  const ids = cluster.store.stored("q").map(({ id }) => id);
  assert.deepEqual(ids, [body[0].message_id]);
});

Deno.test("pushes go behind spooled ones of their partition, and others are stored, each answered by itself", async () => {
  await using cluster = troubledCluster();
  const a = await cluster.start("a");
  await flip(a, true);
  await a.push("p");
  cluster.store.refusesSpools = true;
  await flip(a, false);
  assert.deepEqual(await a.push("p", "q", "p"), ["buffered", "queued", "buffered"]);
  cluster.store.refusesSpools = false;
  await cluster.pass(10_000);
  assert.deepEqual(cluster.stored, ["3", "1", "2", "4"]);
});

Deno.test("a push waits for the last batch before it, at most 1 s, and is then stored", async () => {
  await using cluster = troubledCluster();
  const a = await cluster.start("a");
  await flip(a, true);
  for (let i = 0; i < 3; i++) await a.push("p");
  let open = () => {};
  cluster.store.gate = new Promise((resolve) => open = resolve);
  await flip(a, false);
  const item = { queue: "q", partition: "p", payload: 4 };
  const slow = a.http.call("/api/v1/push", { body: { items: [item] } });
  await cluster.pass(1100);
  assert.equal((await slow).body[0].status, "buffered");
  open();
  await cluster.pass(100);
  assert.deepEqual(cluster.stored, ["1", "2", "3", "4"]);
  assert.deepEqual(await a.push("p"), ["queued"]);
});

Deno.test("a full spool refuses pushes with 503, and what it holds drains", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { spool: { bytesMax: 300 } });
  await flip(a, true);
  assert.deepEqual(await a.push("p"), ["buffered"]);
  const items = Array.from({ length: 5 }, () => ({ queue: "q", partition: "p", payload: 9 }));
  const { status, body } = await a.call("/api/v1/push", { body: { items } });
  assert.equal(status, 503);
  assert.match(body.error, /300 bytes/);
  const overview = (await a.call("/api/v1/system/maintenance")).body;
  assert.deepEqual([overview.bufferedMessages, overview.bufferHealthy], [1, false]);
  await flip(a, false);
  await cluster.pass(1500);
  assert.deepEqual(cluster.stored, ["1"]);
});

Deno.test("a disk that refuses gives 503, and nothing of the push counts", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a");
  await flip(a, true);
  a.files.fault = (operation) => operation === "sync" ? "ENOSPC" : undefined;
  const items = [{ queue: "q", payload: 1 }];
  assert.equal((await a.call("/api/v1/push", { body: { items } })).status, 503);
  a.files.fault = () => undefined;
  assert.deepEqual(await a.push("p"), ["buffered"]);
  await flip(a, false);
  await cluster.pass(1500);
  assert.deepEqual(cluster.stored, ["1"]);
});

Deno.test("PostgreSQL away at the start: the replica serves, buffers, and drains once it is there", async () => {
  await using cluster = spooledCluster();
  cluster.store.isAway = true;
  const a = await cluster.start("a", { cipher: KEY });
  assert.equal((await a.call("/health")).status, 503);
  assert.deepEqual(await a.push("p", "p"), ["buffered", "buffered"]);
  await cluster.pass(30_000);
  cluster.store.isAway = false;
  await cluster.pass(11_000);
  assert.equal((await a.call("/health")).status, 200);
  assert.deepEqual(cluster.stored, ["1", "2"]);
  assert.deepEqual(await a.push("p"), ["queued"]);
});

Deno.test("nothing drains at the start under maintenance", async () => {
  await using cluster = spooledCluster();
  const before = await cluster.start("a", { cipher: KEY });
  await flip(before, true);
  await before.push("p");
  await cluster.run(before.replica.close());
  const after = await cluster.start("a", { cipher: KEY, spool: { fileSystem: before.files } });
  await cluster.pass(10_000);
  assert.deepEqual(cluster.stored, []);
  assert.equal((await after.call("/api/v1/system/maintenance")).body.bufferedMessages, 1);
  await flip(after, false);
  await cluster.pass(1500);
  assert.deepEqual(cluster.stored, ["1"]);
});

Deno.test("a spool that another process works on fails the start and leaves nothing", async () => {
  await using cluster = spooledCluster();
  const inUse = new SpoolInUseError("another process works on it");
  const { replica, http } = cluster.make("a", {
    spool: { acquireLock: () => Promise.reject(inUse) },
  });
  await assert.rejects(cluster.run(replica.start()), inUse);
  assert.equal(http.isBound, false);
});

Deno.test("spools of other replicas are reported, and drained where that is asked for", async () => {
  await using cluster = spooledCluster();
  const other = await cluster.start("other");
  await flip(other, true);
  await other.push("p");
  await cluster.run(other.replica.close());
  cluster.store.flags.maintenance = { enabled: false, version: 9 };
  const spool = { fileSystem: other.files };
  const a = await cluster.start("a", { spool });
  await cluster.pass(10_000);
  assert.deepEqual(cluster.stored, []);
  const reported = cluster.logger.entries.find(({ message }) => /another replica/.test(message));
  assert.equal(reported?.fields["directory"], "/data/queen-spool/other");
  await cluster.run(a.replica.close());
  await cluster.start("b", { spool: { ...spool, adopt: true } });
  await cluster.pass(10_000);
  assert.deepEqual(cluster.stored, ["1"]);
});

Deno.test("a replica without a spool refuses what it would have to spool", async () => {
  await using cluster = spooledCluster();
  const a = await cluster.start("a", { spool: null });
  cluster.store.isAway = true;
  const items = [{ queue: "q", payload: 1 }];
  const { status, body } = await a.call("/api/v1/push", { body: { items } });
  assert.equal(status, 503);
  assert.match(body.error, /PostgreSQL is away/);
});
