import assert from "node:assert/strict";
import { settle } from "../simulation/virtual_clock.ts";
import { ENCRYPTED_QUEUES_MAX, EncryptedQueues } from "./encrypted_queues.ts";
import type { EncryptedQueue } from "./store/store.ts";

const TENANT = "00000000-0000-0000-0000-000000000001";

/** A PostgreSQL that answers when it is told to. */
class Bench {
  readonly asked: PromiseWithResolvers<readonly EncryptedQueue[]>[] = [];
  readonly remembered: (string[] | undefined)[] = [];
  readonly queues = new EncryptedQueues({
    load: () => {
      const asked = Promise.withResolvers<readonly EncryptedQueue[]>();
      this.asked.push(asked);
      return asked.promise;
    },
    remember: (queues) => {
      this.remembered.push(queues?.map(({ queue }) => queue));
      return Promise.resolve();
    },
  });

  async answer(...queues: string[]): Promise<void> {
    this.asked.shift()!.resolve(queues.map((queue) => ({ tenant: TENANT, queue })));
    await settle();
  }

  isClear(queue: string, tenant = TENANT): boolean {
    return this.queues.isClear(tenant, queue);
  }
}

Deno.test("nothing is known before PostgreSQL has answered", async () => {
  const bench = new Bench();
  assert.equal(bench.isClear("a"), false);
  const refreshed = bench.queues.refresh();
  assert.equal(bench.isClear("a"), false);
  await bench.answer("b");
  await refreshed;
  assert.deepEqual([bench.isClear("a"), bench.isClear("b")], [true, false]);
  assert.equal(bench.isClear("b", "aaaaaaaa-0000-0000-0000-000000000002"), true);
});

Deno.test("what changes during a read is not known by it, but by the next one", async () => {
  const bench = new Bench();
  bench.queues.refresh();
  bench.queues.noteChanged("a");
  await bench.answer();
  assert.deepEqual([bench.isClear("a"), bench.isClear("b")], [false, true]);
  await bench.answer();
  assert.equal(bench.isClear("a"), true);
});

Deno.test("any number of changes costs one read at a time", async () => {
  const bench = new Bench();
  for (let i = 0; i < 1000; i++) bench.queues.noteChanged(`q${i}`);
  assert.equal(bench.asked.length, 1);
  await bench.answer();
  assert.equal(bench.asked.length, 1);
  await bench.answer();
  assert.equal(bench.asked.length, 0);
  assert.equal(bench.isClear("q999"), true);
});

Deno.test("a read that fails leaves what is known, and what is not", async () => {
  const bench = new Bench();
  bench.queues.refresh();
  await bench.answer("a");
  bench.queues.noteChanged("b");
  bench.asked.shift()!.reject(new Error("away"));
  await settle();
  assert.deepEqual([bench.isClear("a"), bench.isClear("b"), bench.isClear("c")], [
    false,
    false,
    true,
  ]);
});

Deno.test("beyond the limit nothing is known", async () => {
  const bench = new Bench();
  bench.queues.refresh();
  await bench.answer(...Array.from({ length: ENCRYPTED_QUEUES_MAX + 1 }, (_, i) => `q${i}`));
  assert.equal(bench.isClear("other"), false);
  assert.deepEqual(bench.remembered, [undefined]);
});

Deno.test("what is known is remembered, and what is recalled counts until PostgreSQL answers", async () => {
  const bench = new Bench();
  bench.queues.recall([{ tenant: TENANT, queue: "a" }]);
  assert.deepEqual([bench.isClear("a"), bench.isClear("b")], [false, true]);
  bench.queues.refresh();
  await bench.answer("b");
  assert.deepEqual([bench.isClear("a"), bench.isClear("b")], [true, false]);
  assert.deepEqual(bench.remembered, [["b"]]);
});
