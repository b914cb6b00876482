import assert from "node:assert/strict";
import { Prng } from "../../simulation/prng.ts";
import { settle, VirtualClock } from "../../simulation/virtual_clock.ts";
import { MemoryLogger } from "../testing/memory_logger.ts";
import { HOT_LIST_DEFAULTS, type HotListSettings } from "./config.ts";
import { HotList } from "./hot_list.ts";
import { type RingKey, SEED_MAX, SEEDINGS_MAX } from "./seeder.ts";

const A = "00000000-0000-0000-0000-000000000001";
const B = "00000000-0000-0000-0000-00000000000b";
const KEY: RingKey = { tenant: A, queue: "q", group: "g" };

interface Load {
  readonly key: RingKey;
  readonly resolve: (partitions: readonly string[]) => void;
  readonly reject: (error: unknown) => void;
}

function bench(settings: Partial<HotListSettings> = {}, bytesMax?: number) {
  const clock = new VirtualClock();
  const logger = new MemoryLogger();
  /** Loads under way. */
  const loads: Load[] = [];
  const hotList = new HotList({
    clock,
    random: new Prng(1).random,
    logger,
    settings: { ...HOT_LIST_DEFAULTS, ...settings },
    loadCandidates: (key, countMax) => {
      assert.equal(countMax, SEED_MAX);
      return new Promise((resolve, reject) => loads.push({ key, resolve, reject }));
    },
    ...(bytesMax === undefined ? {} : { bytesMax }),
  });
  const take = (key: RingKey = KEY) => hotList.take(key, 99).partitions;
  const mark = (partition: string, key: { tenant?: string; queue?: string; group?: string } = {}) =>
    hotList.mark({ tenant: A, queue: "q", partition, ...key });
  return { clock, logger, loads, hotList, take, mark };
}

Deno.test("a mark makes no ring, a poll does", () => {
  const { hotList, take, mark } = bench();
  mark("early");
  assert.equal(hotList.stats.rings, 0);
  assert.deepEqual(take(), []);
  assert.equal(hotList.stats.rings, 1);
  mark("p");
  assert.deepEqual(take(), ["p"]);
});

Deno.test("a mark reaches the rings of every group, or of the one that it names", () => {
  const { take, mark } = bench();
  const other = { ...KEY, group: "other" };
  take();
  take(other);
  mark("every");
  mark("single", { group: "other" });
  mark("nobody", { group: "third" });
  assert.deepEqual(take(), ["every"]);
  assert.deepEqual(take(other), ["every", "single"]);
});

Deno.test("a mark touches its tenant and queue alone", () => {
  const { take, mark } = bench();
  const [ofB, other] = [{ ...KEY, tenant: B }, { ...KEY, queue: "other" }];
  [KEY, ofB, other].forEach(take);
  mark("p", { tenant: B });
  assert.deepEqual([KEY, ofB, other].map(take), [[], ["p"], []]);
});

Deno.test("a mark without a tenant touches every tenant's ring of that queue", () => {
  const { hotList, take } = bench();
  const [ofB, other] = [{ ...KEY, tenant: B }, { ...KEY, queue: "other" }];
  [KEY, ofB, other].forEach(take);
  hotList.mark({ tenant: undefined, queue: "q", partition: "p" });
  assert.deepEqual([KEY, ofB, other].map(take), [["p"], ["p"], []]);
});

Deno.test("a partition that nobody knows or that cannot be is no candidate", () => {
  const { take, mark } = bench();
  take();
  mark("");
  mark("x".repeat(513));
  mark("y".repeat(512));
  assert.deepEqual(take(), ["y".repeat(512)]);
});

Deno.test("a ring is seeded when it is made, and again within each interval", async () => {
  const { clock, loads, take, hotList } = bench({ reseedMs: 1000 });
  take();
  assert.deepEqual(loads.map(({ key }) => key), [KEY]);
  loads.shift()!.resolve(["a", "b"]);
  await settle();
  assert.deepEqual(take(), ["a", "b"]);
  for (let i = 0; i < 50; i++) {
    const last = clock.now();
    take();
    await clock.runUntil(last + 1000, () => loads.length > 0);
    assert(loads.length === 1 && clock.now() - last >= 800, `after ${clock.now() - last} ms`);
    loads.shift()!.resolve([`c${i}`]);
    await settle();
    assert.deepEqual(take(), [`c${i}`]);
  }
  await hotList.close();
});

Deno.test("a mark that comes while a ring is being seeded is not lost", async () => {
  const { loads, take, mark } = bench();
  take();
  mark("new");
  loads.shift()!.resolve(["a"]);
  await settle();
  assert.deepEqual(take(), ["new", "a"]);
});

Deno.test("seeding clears what PostgreSQL does not name, but not what was marked since", async () => {
  const { clock, loads, take, mark, hotList } = bench({ reseedMs: 1000 });
  take();
  loads.shift()!.resolve([]);
  await settle();
  ["stale", "marked again", "named"].forEach((partition) => mark(partition));
  await clock.runUntil(1000, () => loads.length > 0);
  mark("marked again");
  mark("new");
  loads.shift()!.resolve(["named", "lost"]);
  await settle();
  assert.deepEqual(take(), ["marked again", "named", "new", "lost"]);
  await hotList.close();
});

Deno.test("what seeding finds is not cleared by a pop that found it empty before", async () => {
  const { loads, take, mark, hotList } = bench();
  take();
  mark("p");
  const taken = hotList.take(KEY, 1);
  loads.shift()!.resolve(["p"]);
  await settle();
  taken.settle({ claimed: [] });
  assert.deepEqual(take(), ["p"]);
});

Deno.test("an answer that was cut off clears nothing", async () => {
  const { clock, loads, mark, take, hotList } = bench({ reseedMs: 1000 });
  take();
  loads.shift()!.resolve([]);
  await settle();
  mark("not among them");
  await clock.runUntil(1000, () => loads.length > 0);
  loads.shift()!.resolve(Array.from({ length: SEED_MAX }, (_, i) => `p${i}`));
  await settle();
  assert.deepEqual(take()[0], "not among them");
  assert.equal(hotList.take(KEY, 1e9).partitions.length, SEED_MAX + 1);
  await hotList.close();
});

Deno.test("a ring that nobody polls is not seeded again, and is once somebody does", async () => {
  const { clock, loads, take, hotList } = bench({ reseedMs: 1000, idleSweepMs: 1e6 });
  take();
  loads.shift()!.resolve([]);
  await clock.advance(1000);
  loads.shift()?.resolve([]);
  await clock.advance(100_000);
  assert.equal(loads.length, 0);
  take();
  await clock.advance(1000);
  assert.equal(loads.length, 1);
  loads.shift()!.resolve([]);
  await hotList.close();
});

Deno.test("only so many rings are seeded at a time, each in its turn", async () => {
  const { loads, take, hotList } = bench();
  const keys = Array.from({ length: 10 }, (_, i) => ({ ...KEY, queue: `q${i}` }));
  keys.forEach(take);
  const order: string[] = [];
  while (loads.length > 0) {
    assert(loads.length <= SEEDINGS_MAX);
    const { key, resolve } = loads.shift()!;
    order.push(key.queue);
    resolve(["p"]);
    await settle();
  }
  assert.deepEqual(order, keys.map(({ queue }) => queue));
  assert.deepEqual(keys.map(take), keys.map(() => ["p"]));
  await hotList.close();
});

Deno.test("a seeding that fails keeps the ring, is reported once and made again", async () => {
  const { clock, logger, loads, take, mark, hotList } = bench({ reseedMs: 1000 });
  take();
  mark("p");
  const error = new Error("PostgreSQL is away");
  for (let i = 0; i < 3; i++) {
    loads.shift()!.reject(error);
    await settle();
    assert.deepEqual(take(), ["p"]);
    await clock.runUntil(clock.now() + 1000, () => loads.length > 0);
  }
  assert.deepEqual(logger.entries.map(({ level, fields }) => [level, fields["error"]]), [
    ["warn", error],
  ]);
  loads.shift()!.resolve(["a"]);
  await settle();
  assert.deepEqual(take(), ["a"]);
  await clock.runUntil(clock.now() + 1000, () => loads.length > 0);
  loads.shift()!.reject(error);
  await settle();
  assert.equal(logger.entries.length, 2);
  await hotList.close();
});

Deno.test("a ring is dropped when nobody has polled it for long enough, not before", async () => {
  const { clock, loads, take, mark, hotList } = bench({ reseedMs: 1e6, idleSweepMs: 1000 });
  take();
  take({ ...KEY, group: "other" });
  loads.forEach(({ resolve }) => resolve([]));
  await clock.advance(999);
  take();
  mark("p");
  await clock.advance(1);
  assert.equal(hotList.stats.rings, 1);
  await clock.advance(998);
  assert.equal(hotList.stats.rings, 1);
  await clock.advance(1);
  assert.deepEqual(hotList.stats, { rings: 0, bytes: 0, refused: 0 });
  assert.equal(clock.pending, 0);
});

Deno.test("a ring that is polled is swept by no interval of reseeding, however long", async () => {
  const { clock, loads, take, hotList } = bench({ reseedMs: 3_600_000, idleSweepMs: 1000 });
  take();
  loads.shift()!.resolve(["p"]);
  for (let i = 0; i < 100; i++) {
    await clock.advance(500);
    assert.deepEqual(take(), ["p"]);
  }
  assert.equal(loads.length, 0);
  await hotList.close();
});

Deno.test("deleting a queue drops its rings, and a seeding under way brings nothing back", async () => {
  const { loads, take, mark, hotList } = bench();
  const [other, ofB] = [{ ...KEY, queue: "other" }, { ...KEY, tenant: B }];
  [KEY, other, ofB, { ...KEY, group: "h" }].forEach(take);
  mark("p");
  hotList.dropQueue(A, "q");
  hotList.dropQueue(A, "unknown");
  assert.equal(hotList.stats.rings, 2);
  const seeded: string[] = [];
  while (loads.length > 0) {
    for (const { key, resolve } of loads.splice(0)) {
      seeded.push(`${key.tenant === A ? "A" : "B"} ${key.queue}`);
      resolve(["seeded"]);
    }
    await settle();
  }
  // The first one was under way, the last one had not begun.
  assert.deepEqual(seeded, ["A q", "A other", "B q"]);
  assert.deepEqual([take(ofB), take(other)], [["seeded"], ["seeded"]]);
  assert.deepEqual(take(), []);
  hotList.dropQueue(undefined, "q");
  assert.equal(hotList.stats.rings, 1);
  loads.splice(0).forEach(({ resolve }) => resolve([]));
  await hotList.close();
});

Deno.test("a pop that outlives its ring clears nothing in the next one", () => {
  const { take, mark, hotList } = bench();
  take();
  mark("p");
  const taken = hotList.take(KEY, 1);
  hotList.dropQueue(A, "q");
  take();
  mark("p");
  taken.settle({ claimed: [] });
  assert.deepEqual(take(), ["p"]);
});

Deno.test("beyond its bound the hot list takes nothing more, and counts it", () => {
  const { take, mark, hotList } = bench({}, 10_000);
  take();
  for (let i = 0; i < 1000; i++) mark(`p${i}`);
  const { bytes, refused } = hotList.stats;
  assert(bytes > 9000 && bytes <= 10_000, `${bytes} bytes`);
  assert(refused > 900, `${refused} refused`);
  assert.deepEqual(take({ ...KEY, queue: "other" }), []);
  assert.equal(hotList.stats.rings, 1);
  const taken = hotList.take(KEY, 1e9);
  assert(taken.partitions.length > 50);
  taken.settle({ claimed: [] });
  mark("p");
  assert.deepEqual(take(), ["p"]);
});

Deno.test("switched off, the hot list keeps nothing and asks nothing", () => {
  const { clock, loads, take, mark, hotList } = bench({ enabled: false });
  assert.deepEqual(take(), []);
  mark("p");
  assert.deepEqual(take(), []);
  assert.equal(loads.length, 0);
  assert.equal(clock.pending, 0);
  assert.deepEqual(hotList.stats, { rings: 0, bytes: 0, refused: 0 });
});

Deno.test("closing leaves no timer and no ring, and waits for a seeding under way", async () => {
  const { clock, loads, take, mark, hotList } = bench();
  Array.from({ length: 5 }, (_, i) => take({ ...KEY, queue: `q${i}` }));
  assert.equal(loads.length, SEEDINGS_MAX);
  let isClosed = false;
  const closing = hotList.close().then(() => isClosed = true);
  assert.equal(clock.pending, 0);
  await settle();
  assert.equal(isClosed, false);
  loads.forEach(({ resolve }) => resolve(["p"]));
  await closing;
  assert.equal(loads.length, SEEDINGS_MAX);
  assert.deepEqual(take(), []);
  mark("p");
  assert.deepEqual(hotList.stats, { rings: 0, bytes: 0, refused: 0 });
});
