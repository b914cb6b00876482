import assert from "node:assert/strict";
import { settle, VirtualClock } from "../simulation/virtual_clock.ts";
import type { PopWaitSettings } from "./backoff.ts";
import { type Popped, PopService } from "./pop_service.ts";
import type { DiscoveryFilter } from "./store/store.ts";
import { FakeStore } from "./testing/fake_store.ts";
import { MemoryLogger } from "./testing/memory_logger.ts";
import { Waker } from "./waker.ts";
import { Wakes } from "./wakes.ts";

const TENANT = "00000000-0000-0000-0000-000000000001";
const OTHER_TENANT = "00000000-0000-0000-0000-000000000002";
const NO_POLLS: PopWaitSettings = { initialMs: 1e8, threshold: 0, multiplier: 1, maxMs: 1e8 };
const POLLS: PopWaitSettings = { initialMs: 100, threshold: 3, multiplier: 2, maxMs: 1000 };

/** Pops by namespace and task over a store whose calls take 10 ms. */
class Bench {
  readonly clock = new VirtualClock();
  readonly store = new FakeStore({ clock: this.clock, latencyMs: () => 5 });
  readonly waker: Waker;
  readonly wakes: Wakes;
  readonly pops: PopService;
  discoverCount = 0;
  #messages = 0;

  constructor(popWait: PopWaitSettings = NO_POLLS) {
    const { clock, store } = this;
    this.waker = new Waker({ clock, popWait });
    this.wakes = new Wakes({ waker: this.waker, broadcast: () => {} });
    const { waker, wakes } = this;
    const discover: FakeStore["discover"] = (...query) => {
      this.discoverCount++;
      return store.discover(...query);
    };
    const beginGroup: FakeStore["beginGroup"] = (...query) => store.beginGroup(...query);
    const logger = new MemoryLogger();
    this.pops = new PopService({
      store,
      queues: { discover, beginGroup },
      clock,
      waker,
      wakes,
      logger,
    });
  }

  /** Makes queues of these namespaces. */
  async configure(namespaces: Record<string, string>): Promise<void> {
    const configuring = Object.entries(namespaces).map(([queue, namespace]) =>
      this.store.configure(TENANT, { queue, namespace })
    );
    await this.clock.advance(10);
    await Promise.all(configuring);
  }

  pop(filter: DiscoveryFilter, { waitMs = 1e6, signal = new AbortController().signal } = {}) {
    const asked: { popped?: Popped | undefined; done: boolean } = { done: false };
    const query = { ...filter, batch: 1, autoAck: true };
    this.pops.pop({ tenant: TENANT, query, waitMs, signal })
      .then((popped) => Object.assign(asked, { popped, done: true }));
    return asked;
  }

  async park(count: number, filter: DiscoveryFilter = { namespace: "n" }) {
    const asked = Array.from({ length: count }, () => this.pop(filter));
    // It looks, learns which queues there are, and looks once more.
    await this.clock.advance(60);
    return asked;
  }

  async push(queue: string, ...partitions: string[]): Promise<void> {
    const items = partitions.map((partition) => {
      const id = `m${++this.#messages}`;
      return { queue, partition, messageId: id, transactionId: id, payload: "1" };
    });
    const pushing = this.store.push(TENANT, items).then(({ touched }) => {
      this.wakes.announce(TENANT, touched);
    });
    await this.clock.advance(10);
    await pushing;
  }

  async assertNothingLeft(): Promise<void> {
    this.waker.close();
    await this.clock.advance(1000);
    await this.pops.settle();
    await settle();
    assert.equal(this.waker.parkedCount, 0, "parked");
    assert.equal(this.waker.queueCount, 0, "queues");
    assert.equal(this.waker.discoveryCount, 0, "discoveries");
    assert.equal(this.clock.pending, 0, "timers");
  }
}

Deno.test("a hundred pops that wait by namespace and one message make one query", async () => {
  const bench = new Bench();
  await bench.configure({ q1: "n", q2: "n" });
  const asked = await bench.park(100);
  const before = bench.discoverCount;
  await bench.push("q1", "p");
  await bench.clock.advance(100);
  assert.equal(bench.discoverCount - before, 1);
  assert.equal(asked.filter(({ popped }) => popped?.queue === "q1").length, 1);
  await bench.assertNothingLeft();
});

Deno.test("a hundred messages in two queues release a hundred pops without a poll", async () => {
  const bench = new Bench();
  await bench.configure({ q1: "n", q2: "n" });
  const asked = await bench.park(100);
  // The partitions of both queues have the same names.
  const names = Array.from({ length: 50 }, (_, n) => `p${n}`);
  await bench.push("q1", ...names);
  await bench.push("q2", ...names);
  await bench.clock.advance(1000);
  assert.ok(asked.every(({ popped }) => popped !== undefined));
  assert.equal(bench.pops.counts.pollQueries, 0);
  await bench.assertNothingLeft();
});

Deno.test("a thousand pops that wait by namespace are not a thousand polls", async () => {
  const bench = new Bench(POLLS);
  await bench.configure({ q: "n" });
  await bench.park(1000);
  const before = bench.pops.counts.pollQueries;
  await bench.clock.advance(10_000);
  const polls = bench.pops.counts.pollQueries - before;
  assert.ok(polls <= 20, `${polls} polls`);
  await bench.assertNothingLeft();
});

Deno.test("a queue that does not match, another group and another tenant wake nobody", async () => {
  const bench = new Bench();
  await bench.configure({ q: "n", other: "m" });
  await bench.park(1);
  const before = bench.pops.counts.wakeQueries;
  bench.waker.wake({ tenant: TENANT, queue: "other", partition: "p" });
  bench.waker.wake({ tenant: TENANT, queue: "q", partition: "p", group: "g" });
  bench.waker.wake({ tenant: OTHER_TENANT, queue: "q", partition: "p" });
  bench.waker.wakeDiscoveries(OTHER_TENANT);
  await bench.clock.advance(100);
  assert.equal(bench.pops.counts.wakeQueries, before);
  bench.waker.wake({ tenant: undefined, queue: "q", partition: "" });
  await bench.clock.advance(100);
  assert.equal(bench.pops.counts.wakeQueries, before + 1);
  bench.waker.wakeDiscoveries(undefined);
  await bench.clock.advance(100);
  assert.equal(bench.pops.counts.wakeQueries, before + 2);
  await bench.assertNothingLeft();
});

Deno.test("a push that commits while the queues are learnt is not lost", async () => {
  for (let ms = 0; ms <= 60; ms++) {
    const bench = new Bench();
    await bench.configure({ q: "n" });
    const asked = bench.pop({ namespace: "n" });
    await bench.clock.advance(ms);
    await bench.push("q", "p");
    await bench.clock.advance(200);
    assert.equal(asked.popped?.partition, "p", `a push ${ms} ms after the pop`);
    await bench.assertNothingLeft();
  }
});

Deno.test("a queue that comes to match is found by the backoff, without any word of it", async () => {
  const bench = new Bench(POLLS);
  await bench.configure({ q: "m" });
  const [asked] = await bench.park(1);
  await bench.configure({ q: "n" });
  await bench.push("q", "p");
  await bench.clock.advance(1100);
  assert.equal(asked!.popped?.queue, "q");
  await bench.assertNothingLeft();
});

Deno.test("a queue that no longer matches wakes nobody once that is known", async () => {
  const bench = new Bench();
  await bench.configure({ q: "n", q2: "n" });
  const [asked] = await bench.park(1);
  await bench.configure({ q: "m" });
  bench.waker.wakeDiscoveries(TENANT);
  await bench.clock.advance(100);
  const before = bench.pops.counts.wakeQueries;
  await bench.push("q", "p");
  await bench.clock.advance(100);
  assert.equal(bench.pops.counts.wakeQueries, before);
  await bench.push("q2", "p");
  await bench.clock.advance(100);
  assert.equal(asked!.popped?.queue, "q2");
  await bench.assertNothingLeft();
});

Deno.test("a group has waited for a new queue since the oldest pop by namespace that still waits", async () => {
  const bench = new Bench();
  const arrivals: (number | undefined)[] = [];
  const pop = bench.store.pop.bind(bench.store);
  bench.store.pop = (tenant, query) => {
    arrivals.push(query.arrivedAt);
    return pop(tenant, query);
  };
  await bench.clock.advance(1000);
  const controller = new AbortController();
  const filter = { namespace: "n", consumerGroup: "g" };
  bench.pop(filter, { signal: controller.signal });
  await bench.clock.advance(1000);
  await bench.configure({ q: "n" });
  bench.pop(filter);
  await bench.clock.advance(100);
  controller.abort();
  await bench.configure({ q2: "n" });
  bench.pop(filter);
  await bench.clock.advance(100);
  assert.deepEqual([...new Set(arrivals)], [1000, 2010]);
  await bench.assertNothingLeft();
});

Deno.test("what a pop by namespace leaves wakes the next one", async () => {
  const bench = new Bench();
  await bench.configure({ q: "n" });
  const asked = await bench.park(3);
  const pushing = bench.store.push(
    TENANT,
    ["a", "a", "b"].map((partition, i) => ({
      queue: "q",
      partition,
      messageId: `${i}`,
      transactionId: `${i}`,
      payload: "1",
    })),
  );
  await bench.clock.advance(10);
  await pushing;
  bench.waker.wake({ tenant: TENANT, queue: "q", partition: "" });
  await bench.clock.advance(500);
  assert.ok(asked.every(({ popped }) => popped !== undefined));
  await bench.assertNothingLeft();
});

Deno.test("a client that leaves while it waits by namespace leaves nothing", async () => {
  const bench = new Bench();
  await bench.configure({ q: "n" });
  const controller = new AbortController();
  const asked = bench.pop({ namespace: "n", task: "" }, { signal: controller.signal });
  await bench.clock.advance(60);
  controller.abort();
  await settle();
  assert.deepEqual(asked, { popped: undefined, done: true });
  assert.equal(bench.waker.discoveryCount, 0);
  await bench.assertNothingLeft();
});
