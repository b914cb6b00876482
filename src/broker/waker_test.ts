import assert from "node:assert/strict";
import { settle, VirtualClock } from "../simulation/virtual_clock.ts";
import type { PopWaitSettings } from "./backoff.ts";
import type { Release, Waiter } from "./waiter.ts";
import { QUEUE_MODE, Waker } from "./waker.ts";

const TENANT = "00000000-0000-0000-0000-000000000001";
const NO_POLLS: PopWaitSettings = { initialMs: 1e8, threshold: 0, multiplier: 1, maxMs: 1e8 };

interface Setup {
  readonly popWait?: PopWaitSettings;
}

/** A waker, and waiters whose releases are noted. */
class Bench {
  readonly clock = new VirtualClock();
  readonly waker: Waker;
  readonly releases: string[] = [];

  constructor({ popWait = NO_POLLS }: Setup = {}) {
    this.waker = new Waker({ clock: this.clock, popWait });
  }

  arm(partition?: string, { group = QUEUE_MODE, tenant = TENANT, timeoutMs = 1e6 } = {}): Waiter {
    const waiter = this.waker.arm({ tenant, queue: "q", group, partition }, timeoutMs);
    waiter.begin();
    return waiter;
  }

  park(name: string, partition?: string, options: Parameters<Bench["arm"]>[1] = {}): Waiter {
    const waiter = this.arm(partition, options);
    this.empty(name, waiter);
    return waiter;
  }

  /** Lets the query of `waiter` come up empty; once it is released it begins the next one. */
  empty(name: string, waiter: Waiter): void {
    waiter.empty().then((release: Release) => {
      this.releases.push(`${name} ${release}`);
      if (release === "wake" || release === "poll") waiter.begin();
    });
  }

  wake(partition: string, { tenant = TENANT as string | undefined, group = undefined } = {}): void {
    this.waker.wake({ tenant, queue: "q", partition, group });
  }

  /** What was released since the last call. */
  async released(): Promise<string[]> {
    await settle();
    return this.releases.splice(0);
  }

  async assertNothingLeft(): Promise<void> {
    await settle();
    assert.equal(this.waker.parkedCount, 0, "parked");
    assert.equal(this.waker.queueCount, 0, "queues");
    assert.equal(this.clock.pending, 0, "timers");
  }
}

Deno.test("a wake releases one waiter, the oldest", async () => {
  const bench = new Bench();
  const waiters = ["a", "b", "c"].map((name) => bench.park(name));
  assert.equal(bench.waker.parkedCount, 3);
  bench.wake("p");
  assert.deepEqual(await bench.released(), ["a wake"]);
  assert.equal(bench.waker.parkedCount, 2);
  waiters.forEach((waiter) => waiter.leave());
});

Deno.test("a hundred wakes for a hundred partitions release a hundred waiters at once", async () => {
  const bench = new Bench();
  const waiters = Array.from({ length: 101 }, (_, i) => bench.park(`w${i}`));
  for (let i = 0; i < 100; i++) bench.wake(`p${i}`);
  assert.deepEqual(await bench.released(), Array.from({ length: 100 }, (_, i) => `w${i} wake`));
  waiters.forEach((waiter) => waiter.leave());
  await bench.assertNothingLeft();
});

Deno.test("a wake between the query and the parking is not lost", async () => {
  const bench = new Bench();
  const waiter = bench.arm();
  bench.wake("p");
  bench.empty("a", waiter);
  assert.deepEqual(await bench.released(), ["a wake"]);
  bench.empty("a", waiter);
  assert.deepEqual(await bench.released(), [], "one wake asks for one more query");
  waiter.leave();
});

Deno.test("a wake between the release and the query that follows it asks for no other", async () => {
  const bench = new Bench();
  const waiter = bench.park("a");
  bench.wake("p");
  bench.wake("p");
  assert.deepEqual(await bench.released(), ["a wake"]);
  bench.empty("a", waiter);
  assert.deepEqual(await bench.released(), []);
  waiter.leave();
});

Deno.test("wakes that find nobody parked spread over those who query", async () => {
  const bench = new Bench();
  const waiters = ["a", "b", "c"].map((name) => [name, bench.arm()] as const);
  bench.wake("p1");
  bench.wake("p2");
  for (const [name, waiter] of waiters) bench.empty(name, waiter);
  assert.deepEqual(await bench.released(), ["a wake", "b wake"]);
  waiters.forEach(([, waiter]) => waiter.leave());
});

Deno.test("many wakes for one partition disturb one waiter", async () => {
  const bench = new Bench();
  const waiters = ["a", "b", "c"].map((name) => bench.park(name));
  for (let i = 0; i < 10; i++) bench.wake("p");
  assert.deepEqual(await bench.released(), ["a wake"]);
  for (let i = 0; i < 10; i++) bench.wake("p");
  assert.deepEqual(await bench.released(), []);
  bench.empty("a", waiters[0]!);
  assert.deepEqual(await bench.released(), ["a wake"], "the later wakes ask for one more query");
  waiters.forEach((waiter) => waiter.leave());
});

Deno.test("a waiter that only finds the partition empty does not pass its wake on", async () => {
  const bench = new Bench();
  const waiters = ["a", "b"].map((name) => bench.park(name));
  bench.wake("p");
  await bench.released();
  bench.empty("a", waiters[0]!);
  assert.deepEqual(await bench.released(), []);
  bench.wake("p");
  assert.deepEqual(await bench.released(), ["a wake"], "it is still the oldest");
  waiters.forEach((waiter) => waiter.leave());
});

Deno.test("a woken waiter that leaves passes its wake on", async () => {
  const bench = new Bench();
  const [a, b] = [bench.park("a"), bench.park("b")];
  bench.wake("p");
  await bench.released();
  a.leave();
  assert.deepEqual(await bench.released(), ["b wake"]);
  b.leave();
  await bench.assertNothingLeft();
});

Deno.test("a woken waiter whose timeout ends during its query passes on what came since", async () => {
  const bench = new Bench();
  const a = bench.park("a", undefined, { timeoutMs: 50 });
  const b = bench.park("b");
  bench.wake("p");
  await bench.released();
  await bench.clock.advance(50);
  bench.wake("p");
  bench.empty("a", a);
  assert.deepEqual((await bench.released()).sort(), ["a timeout", "b wake"]);
  b.leave();
  await bench.assertNothingLeft();
});

Deno.test("a woken waiter that takes from another partition passes its wake on", async () => {
  const bench = new Bench();
  const [a, b] = [bench.park("a"), bench.park("b", "p")];
  bench.wake("p");
  assert.deepEqual(await bench.released(), ["a wake"]);
  a.found("other");
  assert.deepEqual(await bench.released(), ["b wake"]);
  b.leave();
});

Deno.test("a woken waiter that takes from the partition passes nothing on", async () => {
  const bench = new Bench();
  const [a, b] = [bench.park("a"), bench.park("b")];
  bench.wake("p");
  await bench.released();
  a.found("p");
  assert.deepEqual(await bench.released(), []);
  b.leave();
});

Deno.test("a wake that came during the query that found something goes to the next", async () => {
  const bench = new Bench();
  const [a, b] = [bench.park("a"), bench.park("b")];
  bench.wake("p");
  await bench.released();
  bench.wake("p");
  a.found("p");
  assert.deepEqual(await bench.released(), ["b wake"]);
  b.leave();
});

Deno.test("what one takes is spent for the other that was woken for it before", async () => {
  const bench = new Bench();
  const [a, b, c] = [bench.park("a"), bench.park("b"), bench.park("c")];
  bench.wake("p1");
  bench.wake("p2");
  assert.deepEqual(await bench.released(), ["a wake", "b wake"]);
  a.found("p2");
  b.found("p1");
  assert.deepEqual(
    await bench.released(),
    ["c wake"],
    "p1, which a was woken for and did not take",
  );
  bench.empty("c", c);
  assert.deepEqual(await bench.released(), []);
  c.leave();
  await bench.assertNothingLeft();
});

Deno.test("a wake for a partition releases only those who can take from it", async () => {
  const bench = new Bench();
  const waiters = [bench.park("other", "x"), bench.park("only", "p"), bench.park("any")];
  bench.wake("p");
  assert.deepEqual(await bench.released(), ["only wake"], "the older one of two lines");
  bench.wake("q");
  assert.deepEqual(await bench.released(), ["any wake"]);
  waiters.forEach((waiter) => waiter.leave());
});

Deno.test("a wake without a partition releases one of each line", async () => {
  const bench = new Bench();
  const waiters = ["x", "x", "y", undefined, undefined]
    .map((partition, i) => bench.park(`${i}${partition ?? ""}`, partition));
  bench.wake("");
  assert.deepEqual(await bench.released(), ["0x wake", "2y wake", "3 wake"]);
  waiters.forEach((waiter) => waiter.leave());
  await bench.assertNothingLeft();
});

Deno.test("a wake without a partition is spent by whatever its waiter takes", async () => {
  const bench = new Bench();
  const [a, b] = [bench.park("a"), bench.park("b")];
  bench.wake("");
  await bench.released();
  a.found("p");
  assert.deepEqual(await bench.released(), []);
  b.leave();
  await bench.assertNothingLeft();
});

Deno.test("a wake releases one waiter in each group, or in the group that it names", async () => {
  const bench = new Bench();
  const waiters = ["g1", "g1", "g2"].map((group, i) => bench.park(`${i}${group}`, "p", { group }));
  bench.wake("p");
  assert.deepEqual(await bench.released(), ["0g1 wake", "2g2 wake"]);
  bench.waker.wake({ tenant: TENANT, queue: "q", partition: "p", group: "g3" });
  assert.deepEqual(await bench.released(), []);
  waiters.forEach((waiter) => waiter.leave());
});

Deno.test("a named tenant is the only one that a wake touches", async () => {
  const bench = new Bench();
  const other = "aaaaaaaa-0000-0000-0000-000000000001";
  const waiters = [bench.park("default"), bench.park("other", undefined, { tenant: other })];
  bench.wake("p", { tenant: other });
  assert.deepEqual(await bench.released(), ["other wake"]);
  waiters.forEach((waiter) => waiter.leave());
});

Deno.test("a wake without a tenant touches every tenant with such a queue", async () => {
  const bench = new Bench();
  const other = "aaaaaaaa-0000-0000-0000-000000000001";
  const waiters = [bench.park("default"), bench.park("other", undefined, { tenant: other })];
  bench.waker.wake({ tenant: undefined, queue: "q", partition: "p" });
  bench.waker.wake({ tenant: undefined, queue: "unknown", partition: "p" });
  assert.deepEqual(await bench.released(), ["default wake", "other wake"]);
  waiters.forEach((waiter) => waiter.leave());
  await bench.assertNothingLeft();
});

Deno.test("a parked waiter ends with its timeout and leaves nothing", async () => {
  const bench = new Bench();
  bench.park("a", undefined, { timeoutMs: 100 });
  await bench.clock.advance(99);
  assert.deepEqual(await bench.released(), []);
  await bench.clock.advance(1);
  assert.deepEqual(await bench.released(), ["a timeout"]);
  await bench.assertNothingLeft();
});

Deno.test("a waiter that leaves while parked is told so and leaves nothing", async () => {
  const bench = new Bench();
  const waiter = bench.park("a", "p");
  waiter.leave();
  waiter.leave();
  assert.deepEqual(await bench.released(), ["a left"]);
  await bench.assertNothingLeft();
});

Deno.test("closing ends those parked at once, and the others after their query", async () => {
  const bench = new Bench();
  bench.park("parked");
  const querying = bench.arm();
  bench.waker.close();
  bench.empty("querying", querying);
  assert.deepEqual(await bench.released(), ["parked closed", "querying closed"]);
  bench.park("late");
  assert.deepEqual(await bench.released(), ["late closed"]);
  await bench.assertNothingLeft();
});

Deno.test("one backoff poll serves a thousand parked waiters", async () => {
  const bench = new Bench({
    popWait: { initialMs: 100, threshold: 3, multiplier: 2, maxMs: 1000 },
  });
  const waiters = Array.from({ length: 1000 }, (_, i) => bench.park(`w${i}`));
  assert.equal(bench.clock.pending, 1001, "a timeout each, and one poll");
  let polls = 0;
  const end = bench.clock.now() + 3000;
  while (bench.clock.next <= end) {
    await bench.clock.step();
    for (const name of await bench.released()) {
      assert.equal(name, "w0 poll", "the oldest polls");
      bench.empty("w0", waiters[0]!);
      polls++;
    }
  }
  // At 100, 200 and 300 ms, then 800 and 1000 ms later.
  assert.equal(polls, 5);
  waiters.forEach((waiter) => waiter.leave());
  await bench.assertNothingLeft();
});

Deno.test("lines of different partitions poll by themselves", async () => {
  const bench = new Bench({
    popWait: { initialMs: 100, threshold: 3, multiplier: 2, maxMs: 1000 },
  });
  const waiters = [bench.park("x", "x"), bench.park("y", "y"), bench.park("any")];
  await bench.clock.advance(100);
  assert.deepEqual(await bench.released(), ["x poll", "y poll", "any poll"]);
  waiters.forEach((waiter) => waiter.leave());
  await bench.assertNothingLeft();
});

Deno.test("no second poll begins while one is under way", async () => {
  const bench = new Bench({
    popWait: { initialMs: 100, threshold: 9, multiplier: 2, maxMs: 1000 },
  });
  const waiters = [bench.park("a"), bench.park("b")];
  await bench.clock.advance(5000);
  assert.deepEqual(await bench.released(), ["a poll"]);
  bench.empty("a", waiters[0]!);
  await bench.clock.advance(100);
  assert.deepEqual(await bench.released(), ["a poll"]);
  waiters[0]!.leave();
  await bench.clock.advance(100);
  assert.deepEqual(await bench.released(), ["b poll"], "who leaves does not take the poll along");
  waiters[1]!.leave();
  await bench.assertNothingLeft();
});

Deno.test("a wake makes the next poll due within the initial interval", async () => {
  const bench = new Bench({
    popWait: { initialMs: 100, threshold: 1, multiplier: 50, maxMs: 5000 },
  });
  const [a, b] = [bench.park("a"), bench.park("b")];
  await bench.clock.advance(100);
  bench.empty("a", a);
  assert.deepEqual(await bench.released(), ["a poll"]);
  await bench.clock.advance(1000);
  assert.deepEqual(await bench.released(), []);
  bench.wake("p");
  assert.deepEqual(await bench.released(), ["a wake"]);
  await bench.clock.advance(100);
  assert.deepEqual(await bench.released(), ["b poll"]);
  a.leave();
  b.leave();
});

Deno.test("waking all releases everybody who waits, whatever they wait for", async () => {
  const bench = new Bench();
  const waiters = [
    bench.park("any"),
    bench.park("only", "p"),
    bench.park("group", undefined, { group: "g" }),
    bench.park("tenant", undefined, { tenant: "aaaaaaaa-0000-0000-0000-000000000002" }),
  ];
  await bench.released();
  bench.waker.wakeAll();
  assert.deepEqual(await bench.released(), [
    "any wake",
    "only wake",
    "group wake",
    "tenant wake",
  ]);
  for (const waiter of waiters) waiter.leave();
  await bench.assertNothingLeft();
});

Deno.test("waking all is not lost on a waiter whose query is under way", async () => {
  const bench = new Bench();
  const waiter = bench.arm();
  bench.waker.wakeAll();
  bench.empty("a", waiter);
  assert.deepEqual(await bench.released(), ["a wake"]);
  // The query that began since has covered it.
  bench.empty("a", waiter);
  assert.deepEqual(await bench.released(), []);
  waiter.leave();
  await bench.assertNothingLeft();
});
