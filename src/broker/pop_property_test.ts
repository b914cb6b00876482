import assert from "node:assert/strict";
import fc from "fast-check";
import { Prng } from "../simulation/prng.ts";
import { settle, VirtualClock } from "../simulation/virtual_clock.ts";
import type { PopWaitSettings } from "./backoff.ts";
import { type Popped, PopService } from "./pop_service.ts";
import type { Ack, PartitionName } from "./store/store.ts";
import { FakeStore } from "./testing/fake_store.ts";
import { MemoryLogger } from "./testing/memory_logger.ts";
import { QUEUE_MODE, Waker } from "./waker.ts";
import { Wakes } from "./wakes.ts";

const TENANT = "00000000-0000-0000-0000-000000000001";
const QUEUE = "q";
const PARTITIONS = ["p0", "p1", "p2", "p3"];
const GROUPS = [QUEUE_MODE, "g"];
const LATENCY_MS_MAX = 10;
/** A query takes at most this long: three legs with autoAck. */
const QUERY_MS_MAX = 3 * LATENCY_MS_MAX;

type Step =
  | {
    do: "pop";
    group: string;
    filter: string | undefined;
    partitions: number;
    batch: number;
    autoAck: boolean;
    waitMs: number;
  }
  | { do: "push"; partitions: string[] }
  | { do: "ack"; pick: number; status: Ack["status"] }
  | { do: "ackLate"; pick: number }
  | { do: "lose"; pick: number }
  | { do: "cancel"; pick: number }
  | { do: "notify"; partition: string }
  | { do: "advance"; ms: number };

const partition = fc.constantFrom(...PARTITIONS);
const pick = fc.nat({ max: 1000 });
const status = fc.constantFrom<Ack["status"]>("completed", "completed", "retry", "failed");

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("pop" as const),
      group: fc.constantFrom(...GROUPS),
      filter: fc.option(partition, { nil: undefined }),
      partitions: fc.constantFrom(1, 1, 3),
      batch: fc.constantFrom(1, 2, 10),
      autoAck: fc.boolean(),
      waitMs: fc.constantFrom(30, 1e7, 1e7),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("push" as const),
      partitions: fc.array(partition, { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("ack" as const), pick, status }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("ackLate" as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel" as const), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("notify" as const),
      partition: fc.constantFrom("", ...PARTITIONS),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      ms: fc.integer({ min: 0, max: 25 }),
    }),
  },
);

interface Waiting {
  readonly group: string;
  readonly filter: string | undefined;
  readonly abort: () => void;
}

interface WorldOptions {
  readonly popWait: PopWaitSettings;
  readonly latencySeed: number;
  readonly leaseMs: number;
  /** Whether anybody is told of what becomes available. */
  readonly wakes: boolean;
}

/** Clients, a service and a store, driven step by step. */
class World {
  readonly clock = new VirtualClock();
  readonly store: FakeStore;
  readonly waker: Waker;
  readonly pops: PopService;
  readonly waiting = new Set<Waiting>();
  readonly delivered: Popped[] = [];
  readonly #options: WorldOptions;
  readonly #wakes: Wakes;
  #messages = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    const { clock } = this;
    const prng = new Prng(options.latencySeed);
    this.store = new FakeStore({
      clock,
      latencyMs: () => prng.integer(1, LATENCY_MS_MAX),
      leaseMs: options.leaseMs,
    });
    this.waker = new Waker({ clock, popWait: options.popWait });
    this.#wakes = new Wakes({ waker: this.waker, broadcast: () => {} });
    this.pops = new PopService({
      store: this.store,
      queues: this.store,
      clock,
      waker: this.waker,
      wakes: this.#wakes,
      logger: new MemoryLogger(),
    });
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case "pop":
        return this.#pop(step);
      case "push":
        return this.#push(step.partitions);
      case "ack":
        return this.#ack(take(this.delivered, step.pick), step.status, { withLease: true });
      case "ackLate":
        return this.#ack(at(this.delivered, step.pick), "completed", { withLease: false });
      case "lose":
        return this.#lose(take(this.delivered, step.pick));
      case "cancel":
        at([...this.waiting], step.pick)?.abort();
        return;
      case "notify":
        return this.#announce([{ queue: QUEUE, partition: step.partition }]);
      case "advance":
        await this.clock.advance(step.ms);
    }
  }

  /** The partitions that somebody who waits could take from. */
  stranded(): string[] {
    const waiting = [...this.waiting];
    return GROUPS.flatMap((group) =>
      this.store.takeable(QUEUE, group)
        .filter((name) =>
          waiting.some((each) =>
            each.group === group && (each.filter === undefined || each.filter === name)
          )
        )
        .map((name) => `${name} for ${group}`)
    );
  }

  /** Ends everything and checks that nothing is left. */
  async end(): Promise<void> {
    this.waker.close();
    await this.clock.advance(10 * QUERY_MS_MAX);
    await this.pops.settle();
    assert.equal(this.waiting.size, 0, "pops");
    assert.equal(this.waker.parkedCount, 0, "parked");
    assert.equal(this.waker.queueCount, 0, "queues");
    assert.equal(this.clock.pending, 0, "timers");
  }

  #pop({ group, filter, partitions, batch, autoAck, waitMs }: Extract<Step, { do: "pop" }>): void {
    const controller = new AbortController();
    const waiting = { group, filter, abort: () => controller.abort() };
    this.waiting.add(waiting);
    controller.signal.addEventListener("abort", () => this.waiting.delete(waiting));
    this.pops.pop({
      tenant: TENANT,
      query: {
        queue: QUEUE,
        consumerGroup: group,
        partitions,
        batch,
        autoAck,
        ...(filter === undefined ? {} : { partition: filter }),
      },
      waitMs,
      signal: controller.signal,
    }).then((batch) => {
      this.waiting.delete(waiting);
      if (batch !== undefined) this.delivered.push(batch);
    });
  }

  #push(partitions: readonly string[]): void {
    const items = partitions.map((partition) => {
      const id = `m${++this.#messages}`;
      return { queue: QUEUE, partition, messageId: id, transactionId: id, payload: "1" };
    });
    this.store.push(TENANT, items).then(({ touched }) => this.#announce(touched));
  }

  #ack(
    batch: Popped | undefined,
    status: Ack["status"],
    { withLease }: { readonly withLease: boolean },
  ): void {
    if (batch?.leaseId === undefined) return;
    const { consumerGroup } = batch;
    const acks = [batch, ...batch.others].flatMap(({ partitionId, messages, leaseId }) =>
      messages.map(({ transactionId }): Ack => ({
        transactionId,
        partitionId,
        status,
        consumerGroup,
        ...(withLease ? { leaseId: leaseId! } : {}),
      }))
    );
    this.store.ack(TENANT, acks).then(({ available }) => this.#announce(available));
  }

  #lose(batch: Popped | undefined): void {
    if (batch === undefined) return;
    this.pops.watchDelivery(TENANT, batch, Promise.reject(new Error("connection reset")));
  }

  #announce(partitions: readonly PartitionName[]): void {
    if (this.#options.wakes) this.#wakes.announce(TENANT, partitions);
  }
}

function at<T>(items: readonly T[], pick: number): T | undefined {
  return items[pick % Math.max(items.length, 1)];
}

function take<T>(items: T[], pick: number): T | undefined {
  return items.splice(pick % Math.max(items.length, 1), 1)[0];
}

const steps = fc.array(step, { minLength: 1, maxLength: 60, size: "max" });
const latencySeed = fc.nat();

Deno.test("no interleaving leaves a takeable message with a parked pop, without any poll", async () => {
  await fc.assert(
    fc.asyncProperty(steps, latencySeed, async (steps, latencySeed) => {
      const popWait = { initialMs: 1e8, threshold: 0, multiplier: 1, maxMs: 1e8 };
      const world = new World({ popWait, latencySeed, leaseMs: 1e9, wakes: true });
      for (const step of steps) await world.take(step);
      // Long enough for every query that leads to another, and too short for any poll or timeout.
      await world.clock.advance(100 * QUERY_MS_MAX);
      assert.deepEqual(world.stranded(), []);
      assert.equal(world.pops.counts.pollQueries, 0);
      await world.end();
    }),
    { numRuns: 3000 },
  );
});

Deno.test("without any wake no message waits longer than the backoff for a parked pop", async () => {
  const popWait = { initialMs: 50, threshold: 2, multiplier: 2, maxMs: 300 };
  // One poll finds one partition; each one found leads to the next by one more query.
  const limitMs = popWait.maxMs + (PARTITIONS.length + 3) * QUERY_MS_MAX;
  await fc.assert(
    fc.asyncProperty(steps, latencySeed, async (steps, latencySeed) => {
      const world = new World({ popWait, latencySeed, leaseMs: 400, wakes: false });
      const since = new Map<string, number>();
      const watch = () => {
        const stranded = world.stranded();
        for (const name of since.keys()) if (!stranded.includes(name)) since.delete(name);
        for (const name of stranded) {
          const start = since.get(name) ?? world.clock.now();
          since.set(name, start);
          const ms = world.clock.now() - start;
          assert(ms <= limitMs, `${name} has waited ${ms} ms, more than ${limitMs}`);
        }
      };
      for (const step of steps) {
        if (step.do !== "advance") await world.take(step);
        else await advance(world.clock, step.ms, watch);
      }
      await advance(world.clock, 1500, watch);
      await world.end();
    }),
    { numRuns: 600 },
  );
});

/** Moves time on, and calls `watch` after every instant at which anything happens. */
async function advance(clock: VirtualClock, ms: number, watch: () => void): Promise<void> {
  const end = clock.now() + ms;
  await settle();
  watch();
  while (clock.next <= end) {
    await clock.step();
    watch();
  }
  await clock.runUntil(end);
  watch();
}
