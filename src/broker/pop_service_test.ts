import assert from "node:assert/strict";
import type { OutgoingMessage } from "../protocol/messages.ts";
import { settle, VirtualClock } from "../simulation/virtual_clock.ts";
import type { PopWaitSettings } from "./backoff.ts";
import { DelayedWakes } from "./delayed_wakes.ts";
import { type Popped, PopService } from "./pop_service.ts";
import { type PopQuery, StoreUnavailableError } from "./store/store.ts";
import { FakeStore } from "./testing/fake_store.ts";
import { MemoryLogger } from "./testing/memory_logger.ts";
import { Waker } from "./waker.ts";
import { Wakes } from "./wakes.ts";

const TENANT = "00000000-0000-0000-0000-000000000001";
const NO_POLLS: PopWaitSettings = { initialMs: 1e8, threshold: 0, multiplier: 1, maxMs: 1e8 };
const POLLS: PopWaitSettings = { initialMs: 100, threshold: 3, multiplier: 2, maxMs: 1000 };

/** A pop that was asked for, and what became of it. */
interface Asked {
  readonly abort: () => void;
  batch?: Popped | undefined;
  error?: unknown;
  done: boolean;
}

/** A pop service over a store whose calls take 10 ms: 5 until they take effect, 5 for the answer. */
class Bench {
  readonly clock = new VirtualClock();
  readonly store = new FakeStore({ clock: this.clock, latencyMs: () => 5 });
  readonly logger = new MemoryLogger();
  readonly frames: OutgoingMessage[] = [];
  readonly waker: Waker;
  readonly wakes: Wakes;
  readonly pops: PopService;
  #messages = 0;

  constructor(popWait: PopWaitSettings = NO_POLLS) {
    this.waker = new Waker({ clock: this.clock, popWait });
    const broadcast = (message: OutgoingMessage) => {
      this.frames.push(message);
    };
    this.wakes = new Wakes({ waker: this.waker, broadcast });
    const { store, waker, wakes, logger } = this;
    const { clock } = this;
    this.pops = new PopService({ store, queues: store, clock, waker, wakes, logger });
  }

  pop(query: Partial<PopQuery> = {}, waitMs = 30_000): Asked {
    const controller = new AbortController();
    const asked: Asked = { abort: () => controller.abort(), done: false };
    this.pops.pop({
      tenant: TENANT,
      query: { queue: "q", batch: 10, autoAck: false, ...query },
      waitMs,
      signal: controller.signal,
    }).then(
      (batch) => Object.assign(asked, { batch, done: true }),
      (error) => Object.assign(asked, { error, done: true }),
    );
    return asked;
  }

  /** Arms `count` pops and lets them park. */
  async park(count: number, query: Partial<PopQuery> = {}, waitMs?: number): Promise<Asked[]> {
    const asked = Array.from({ length: count }, () => this.pop(query, waitMs));
    await this.clock.advance(10);
    return asked;
  }

  /** Stores a message in each of `partitions` and announces them all. */
  async push(...partitions: string[]): Promise<void> {
    const items = partitions.map((partition) => {
      const id = `m${++this.#messages}`;
      return { queue: "q", partition, messageId: id, transactionId: id, payload: "1" };
    });
    const pushing = this.store.push(TENANT, items).then(({ touched }) => {
      this.wakes.announce(TENANT, touched);
    });
    await this.clock.advance(10);
    await pushing;
  }

  async assertNothingLeft(): Promise<void> {
    await this.pops.settle();
    await settle();
    assert.equal(this.waker.parkedCount, 0, "parked");
    assert.equal(this.waker.queueCount, 0, "queues");
    assert.equal(this.clock.pending, 0, "timers");
  }
}

Deno.test("a pop that finds a message is answered at once", async () => {
  const bench = new Bench();
  await bench.push("p");
  const [asked] = await bench.park(1);
  assert.equal(asked!.batch?.partition, "p");
  assert.equal(bench.pops.counts.repliesAtOnce, 1);
  await bench.assertNothingLeft();
});

Deno.test("a pop that does not wait is answered empty after one query", async () => {
  const bench = new Bench();
  const [asked] = await bench.park(1, {}, 0);
  assert.deepEqual([asked!.done, asked!.batch], [true, undefined]);
  assert.equal(bench.pops.counts.firstQueries, 1);
  assert.equal(bench.pops.counts.emptyByTimeout, 0);
  await bench.assertNothingLeft();
});

Deno.test("a push wakes a parked pop, after its commit and through one frame to the peers", async () => {
  const bench = new Bench();
  const [asked] = await bench.park(1);
  assert.equal(bench.waker.parkedCount, 1);
  await bench.push("p1", "p2");
  await bench.clock.advance(10);
  assert.equal(asked!.batch?.partition, "p1");
  assert.equal(bench.pops.counts.repliesByWake, 1);
  assert.deepEqual(bench.frames, [{
    type: "message_available",
    items: [
      { queue: "q", partition: "p1", tenant: TENANT },
      { queue: "q", partition: "p2", tenant: TENANT },
    ],
  }]);
});

Deno.test("a push that commits between the query and the parking is not lost", async () => {
  const bench = new Bench();
  const asked = bench.pop();
  await bench.clock.advance(6);
  // The query has looked, and its answer is on its way.
  const pushing = bench.push("p");
  await pushing;
  await bench.clock.advance(10);
  assert.equal(asked.batch?.partition, "p");
  assert.equal(bench.pops.counts.repliesByWake, 1);
});

Deno.test("a hundred parked pops and one message make one query", async () => {
  const bench = new Bench();
  const asked = await bench.park(100);
  const before = bench.store.popCount;
  await bench.push("p");
  await bench.clock.advance(100);
  assert.equal(bench.store.popCount - before, 1);
  assert.deepEqual(asked.filter(({ done }) => done).length, 1);
  bench.waker.close();
  await bench.assertNothingLeft();
});

Deno.test("a hundred pops that query while one message comes make few more queries", async () => {
  const bench = new Bench();
  for (let i = 0; i < 100; i++) bench.pop();
  await bench.clock.advance(6);
  await bench.push("p");
  await bench.clock.advance(100);
  assert.equal(bench.pops.counts.firstQueries, 100);
  assert(bench.pops.counts.wakeQueries <= 3, `${bench.pops.counts.wakeQueries} queries`);
  assert.equal(bench.pops.counts.repliesByWake, 1);
  bench.waker.close();
  await bench.assertNothingLeft();
});

Deno.test("a hundred messages on a hundred partitions release a hundred pops without a poll", async () => {
  const bench = new Bench();
  const asked = await bench.park(100);
  await bench.push(...Array.from({ length: 100 }, (_, i) => `p${i}`));
  await bench.clock.advance(100);
  assert(asked.every(({ batch }) => batch !== undefined));
  assert.equal(bench.pops.counts.repliesByWake, 100);
  assert.equal(bench.pops.counts.wakeQueries, 100);
  await bench.assertNothingLeft();
});

Deno.test("one wake is enough for all that is there, by passing on what is left", async () => {
  const bench = new Bench();
  const asked = await bench.park(100);
  const items = Array.from({ length: 100 }, (_, i) => ({
    queue: "q",
    partition: `p${i}`,
    messageId: `m${i}`,
    transactionId: `m${i}`,
    payload: "1",
  }));
  const pushing = bench.store.push(TENANT, items);
  await bench.clock.advance(10);
  await pushing;
  bench.waker.wake({ tenant: TENANT, queue: "q", partition: "" });
  await bench.clock.advance(100 * 10);
  assert(asked.every(({ batch }) => batch !== undefined));
  assert.equal(bench.pops.counts.pollQueries, 0);
  await bench.assertNothingLeft();
});

Deno.test("more parked pops than messages cost few queries beyond the messages", async () => {
  const bench = new Bench();
  await bench.park(300);
  await bench.push(...Array.from({ length: 100 }, (_, i) => `p${i}`));
  await bench.clock.advance(1000);
  assert.equal(bench.pops.counts.repliesByWake, 100);
  const { wakeQueries } = bench.pops.counts;
  assert(wakeQueries <= 200, `${wakeQueries} queries`);
  bench.waker.close();
  await bench.assertNothingLeft();
});

Deno.test("with autoAck, a full batch wakes the next pop for what it may have left", async () => {
  const bench = new Bench();
  const asked = await bench.park(5, { batch: 1, autoAck: true });
  await bench.push("p", "p", "p", "p", "p");
  await bench.clock.advance(500);
  assert(asked.every(({ batch }) => batch?.messages.length === 1));
  assert.equal(bench.pops.counts.pollQueries, 0);
  await bench.assertNothingLeft();
});

Deno.test("with autoAck a pop wakes for what it left, and for the other partition that it names", async () => {
  const bench = new Bench();
  const asked = await bench.park(3, { batch: 1, bytesMax: 1, autoAck: true });
  await bench.push("p1", "p1", "p2");
  await bench.clock.advance(100);
  const taken = asked.map(({ batch }) => batch?.partition);
  assert.deepEqual(taken.toSorted(), ["p1", "p1", "p2"]);
  assert.equal(bench.pops.counts.pollQueries, 0);
  await bench.assertNothingLeft();
});

Deno.test("a client that leaves while parked is taken out at once", async () => {
  const bench = new Bench();
  const [asked] = await bench.park(1);
  asked!.abort();
  assert.equal(bench.waker.parkedCount, 0);
  await settle();
  assert.deepEqual([asked!.done, asked!.batch], [true, undefined]);
  await bench.assertNothingLeft();
  assert.equal(bench.store.popCount, 1);
});

Deno.test("a batch claimed for a client that left is given back and wakes the next", async () => {
  const bench = new Bench();
  const [first, second] = await bench.park(2);
  const pushing = bench.push("p");
  await pushing;
  await bench.clock.advance(6);
  // The first one's query has claimed the batch, and its answer is on its way.
  assert.equal(bench.store.leaseCount, 1);
  first!.abort();
  await bench.clock.advance(30);
  assert.equal(bench.store.givenBack.length, 1);
  assert.equal(second!.batch?.partition, "p");
  assert.equal(bench.pops.counts.repliesByWake, 1, "what was given back is no reply");
  await bench.assertNothingLeft();
});

Deno.test("a batch whose reply cannot be delivered is given back and wakes the next", async () => {
  const bench = new Bench();
  const [first, second] = await bench.park(2);
  await bench.push("p");
  await bench.clock.advance(10);
  bench.pops.watchDelivery(TENANT, first!.batch!, Promise.reject(new Error("connection reset")));
  await bench.clock.advance(30);
  assert.deepEqual(bench.store.givenBack, [first!.batch!.leaseId]);
  assert.equal(second!.batch?.partition, "p");
  await bench.assertNothingLeft();
});

Deno.test("all batches of a reply that cannot be delivered are given back and wake their group", async () => {
  const bench = new Bench();
  const group = { consumerGroup: "g", start: "all" } as const;
  await bench.push("p1", "p2");
  const [taken] = await bench.park(1, { ...group, partitions: 2 });
  assert.deepEqual(taken!.batch?.others.map(({ partition }) => partition), ["p2"]);
  const asked = [...await bench.park(2, group), ...await bench.park(1, { partition: "p3" })];
  bench.pops.watchDelivery(TENANT, taken!.batch!, Promise.reject(new Error("connection reset")));
  await bench.clock.advance(30);
  assert.equal(bench.store.givenBack.length, 2);
  assert.deepEqual(asked.map(({ batch }) => batch?.partition).toSorted(), ["p1", "p2", undefined]);
  bench.waker.close();
  await bench.clock.advance(10);
  await bench.assertNothingLeft();
});

Deno.test("one pop that takes the messages of several wakes spends them all", async () => {
  const bench = new Bench();
  const [all, other] = [
    ...await bench.park(1, { partitions: 10 }),
    ...await bench.park(1, { partitions: 10 }),
  ];
  await bench.push("p1", "p2", "p3");
  await bench.clock.advance(100);
  const taken = [all!, other!].flatMap(({ batch }) => batch ? [batch, ...batch.others] : []);
  assert.deepEqual(taken.map(({ partition }) => partition).toSorted(), ["p1", "p2", "p3"]);
  assert(bench.pops.counts.wakeQueries <= 3, `${bench.pops.counts.wakeQueries} queries`);
  bench.waker.close();
  await bench.assertNothingLeft();
});

Deno.test("what autoAck leaves for later wakes the group when it is time", async () => {
  const bench = new Bench();
  const pop = bench.store.pop.bind(bench.store);
  const place = { queue: "q", partition: "p" };
  bench.store.pop = async (tenant, query) => ({
    ...await pop(tenant, query),
    left: [],
    delayed: [{ ...place, delayMs: 500 }],
  });
  new DelayedWakes({ clock: bench.clock, wakes: bench.wakes });
  await bench.push("p", "p");
  const [first] = await bench.park(1, { batch: 1, autoAck: true });
  await bench.clock.advance(5);
  assert.equal(first!.batch?.messages.length, 1);
  const woken: unknown[] = [];
  bench.waker.wake = (wake) => woken.push(wake);
  await bench.clock.advance(499);
  assert.deepEqual(woken, []);
  await bench.clock.advance(1);
  assert.deepEqual(woken, [{ tenant: TENANT, ...place, group: "__QUEUE_MODE__" }]);
});

Deno.test("a batch that was delivered is not given back", async () => {
  const bench = new Bench();
  await bench.push("p");
  const [asked] = await bench.park(1);
  bench.pops.watchDelivery(TENANT, asked!.batch!, Promise.resolve());
  await bench.assertNothingLeft();
  assert.deepEqual(bench.store.givenBack, []);
});

Deno.test("a failure to give back is logged", async () => {
  const bench = new Bench();
  await bench.push("p");
  const [asked] = await bench.park(1);
  bench.store.isAway = true;
  bench.pops.watchDelivery(TENANT, asked!.batch!, Promise.reject(new Error("connection reset")));
  await bench.assertNothingLeft();
  assert.equal(bench.logger.entries.length, 1);
  assert.equal(bench.logger.entries[0]!.level, "error");
  assert.equal(bench.logger.entries[0]!.fields["leaseId"], asked!.batch!.leaseId);
});

Deno.test("a timeout answers empty and passes an unspent wake on", async () => {
  const bench = new Bench();
  const [first] = await bench.park(1, {}, 100);
  const [second] = await bench.park(1);
  await bench.clock.advance(90);
  assert.deepEqual([first!.done, first!.batch], [true, undefined]);
  assert.equal(bench.pops.counts.emptyByTimeout, 1);
  await bench.push("p");
  await bench.clock.advance(10);
  assert.equal(second!.batch?.partition, "p");
  await bench.assertNothingLeft();
});

Deno.test("without any wake a parked pop finds a message by the backoff", async () => {
  const bench = new Bench(POLLS);
  const asked = await bench.park(3);
  const pushing = bench.store.push(TENANT, [
    { queue: "q", partition: "p", messageId: "m", transactionId: "m", payload: "1" },
  ]);
  await bench.clock.advance(10);
  await pushing;
  await bench.clock.advance(1000);
  assert.deepEqual(asked.map(({ done }) => done), [true, false, false]);
  assert.equal(bench.pops.counts.repliesByPoll, 1);
  bench.waker.close();
  await bench.clock.advance(10);
  await bench.assertNothingLeft();
});

Deno.test("a pop whose first query finds PostgreSQL away is refused", async () => {
  const bench = new Bench();
  bench.store.isAway = true;
  const asked = bench.pop();
  await settle();
  assert(asked.error instanceof StoreUnavailableError);
  await bench.assertNothingLeft();
});

Deno.test("a parked pop outlives PostgreSQL being away", async () => {
  const bench = new Bench(POLLS);
  const [asked] = await bench.park(1);
  bench.store.isAway = true;
  await bench.clock.advance(5000);
  assert.equal(asked!.done, false);
  bench.store.isAway = false;
  await bench.push("p");
  await bench.clock.advance(1010);
  assert.equal(asked!.batch?.partition, "p");
  await bench.assertNothingLeft();
});

Deno.test("a pop that waits in vain is refused where PostgreSQL was away at the end", async () => {
  const bench = new Bench(POLLS);
  const [asked] = await bench.park(1, {}, 1000);
  bench.store.isAway = true;
  await bench.clock.advance(1000);
  assert(asked!.error instanceof StoreUnavailableError);
  await bench.assertNothingLeft();
});

Deno.test("closing answers parked pops empty", async () => {
  const bench = new Bench(POLLS);
  const asked = await bench.park(3);
  bench.waker.close();
  await settle();
  assert(asked.every(({ done, batch }) => done && batch === undefined));
  assert.equal(bench.pops.counts.emptyByTimeout, 0);
  await bench.assertNothingLeft();
});
