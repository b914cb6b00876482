import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import { StoreUnavailableError } from "../store/store.ts";
import { HttpBench } from "../testing/http_bench.ts";

const TENANT = "00000000-0000-0000-0000-000000000001";

async function push(bench: HttpBench): Promise<void> {
  await bench.call("/api/v1/push", { body: { items: [{ queue: "a/b", payload: 1 }] } });
}

function remove(bench: HttpBench, queue = "a/b") {
  const path = `/api/v1/resources/queues/${encodeURIComponent(queue)}`;
  return bench.call(path, { method: "DELETE" });
}

Deno.test("a delete says whether there was such a queue", async () => {
  const bench = await HttpBench.started();
  await push(bench);
  const first = await remove(bench);
  assert.equal(first.status, 200);
  assert.deepEqual(first.body, { deleted: true, queue: "a/b", existed: true });
  const second = await remove(bench);
  assert.equal(second.status, 200);
  assert.deepEqual(second.body, { deleted: false, queue: "a/b", existed: false });
  assert.equal((await bench.call("/api/v1/pop/queue/a%2Fb")).status, 204);
});

Deno.test("a delete tells the peers and forgets what is known of the queue", async () => {
  const bench = await HttpBench.started();
  await push(bench);
  const key = { tenant: TENANT, queue: "a/b" };
  await bench.upkeep.configs.get(key);
  bench.frames.length = 0;
  await remove(bench);
  assert.deepEqual(bench.frames, [{ type: "queue_config_delete", queue: "a/b", tenant: TENANT }]);
  assert.equal(bench.upkeep.configs.peek(key), undefined);
});

Deno.test("a delete of unknown outcome makes everybody forget the queue too", async () => {
  const bench = await HttpBench.started();
  bench.store.deleteQueue = () => Promise.reject(new StoreUnavailableError("who knows"));
  assert.equal((await remove(bench)).status, 503);
  assert.deepEqual(bench.frames.map(({ type }) => type), ["queue_config_delete"]);
});

Deno.test("a delete wakes nobody, and a pop that waits goes on", async () => {
  const bench = await HttpBench.started();
  await push(bench);
  await bench.call("/api/v1/pop/queue/a%2Fb");
  const waiting = bench.call("/api/v1/pop/queue/a%2Fb?wait=true");
  await settle();
  const pops = bench.store.popCount;
  await remove(bench);
  await settle();
  assert.equal(bench.store.popCount, pops);
  assert.equal(bench.waker.parkedCount, 1);
  await push(bench);
  assert.equal((await waiting).status, 200);
});

Deno.test("a delete removes what it can for a while, and leaves the rest to a sweep", async () => {
  const bench = await HttpBench.started();
  await push(bench);
  bench.store.purge = async () => {
    bench.store.purgeCount++;
    await bench.clock.advance(300);
    return true;
  };
  assert.equal((await remove(bench)).body.deleted, true);
  assert.equal(bench.store.purgeCount, 7);
});

Deno.test("a delete that lost PostgreSQL half-way has deleted the queue", async () => {
  const bench = await HttpBench.started();
  await push(bench);
  bench.store.purge = () => Promise.reject(new StoreUnavailableError("gone"));
  assert.deepEqual((await remove(bench)).body.existed, true);
  assert.deepEqual(bench.logger.entries.map(({ level }) => level), ["warn"]);
});

Deno.test("a queue without a name cannot be deleted", async () => {
  const bench = await HttpBench.started();
  for (const path of ["%00", "x".repeat(513)]) {
    const reply = await bench.call(`/api/v1/resources/queues/${path}`, { method: "DELETE" });
    assert.equal(reply.status, 400);
    assert.match(reply.body.error, /^queue: /);
  }
});
