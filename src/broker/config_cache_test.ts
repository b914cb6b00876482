import assert from "node:assert/strict";
import fc from "fast-check";
import { settle } from "../simulation/virtual_clock.ts";
import { ConfigCache, type QueueFacts, type QueueKey } from "./config_cache.ts";

const A = "00000000-0000-0000-0000-000000000001";
const B = "00000000-0000-0000-0000-00000000000b";
const KEY: QueueKey = { tenant: A, queue: "q" };
const OPEN: QueueFacts = { leaseSeconds: 60, encryptionEnabled: false };
const SECRET: QueueFacts = { leaseSeconds: 300, encryptionEnabled: true };

interface Load {
  readonly key: QueueKey;
  readonly resolve: (facts: QueueFacts | undefined) => void;
  readonly reject: (error: unknown) => void;
}

function bench(queuesMax?: number) {
  /** Look-ups under way. */
  const loads: Load[] = [];
  const cache = new ConfigCache({
    load: (key) => new Promise((resolve, reject) => loads.push({ key, resolve, reject })),
    ...(queuesMax === undefined ? {} : { queuesMax }),
  });
  /** Asks and answers. */
  const know = async (key: QueueKey, facts: QueueFacts) => {
    const asked = cache.get(key);
    loads.splice(0).forEach(({ resolve }) => resolve(facts));
    assert.deepEqual(await asked, facts);
  };
  return { cache, loads, know };
}

Deno.test("a queue is looked up once, and then known", async () => {
  const { cache, loads, know } = bench();
  assert.equal(cache.peek(KEY), undefined);
  await know(KEY, SECRET);
  assert.deepEqual(await cache.get(KEY), SECRET);
  assert.deepEqual(cache.peek(KEY), SECRET);
  assert.equal(loads.length, 0);
});

Deno.test("queues of one name in two tenants are two", async () => {
  const { cache, know } = bench();
  await know(KEY, OPEN);
  await know({ ...KEY, tenant: B }, SECRET);
  assert.deepEqual(cache.peek(KEY), OPEN);
});

Deno.test("those who ask at the same time share one look-up", async () => {
  const { cache, loads } = bench();
  const asked = Array.from({ length: 100 }, () => cache.get(KEY));
  assert.deepEqual(loads.map(({ key }) => key), [KEY]);
  loads[0]!.resolve(OPEN);
  assert.deepEqual(new Set(await Promise.all(asked)), new Set([OPEN]));
});

Deno.test("a failed look-up fails those who asked, and is not kept", async () => {
  const { cache, loads, know } = bench();
  const error = new Error("PostgreSQL is away");
  const asked = [cache.get(KEY), cache.get(KEY)];
  loads.shift()!.reject(error);
  for (const each of asked) await assert.rejects(each, error);
  assert.equal(cache.peek(KEY), undefined);
  assert.equal(cache.lastKnown(KEY), undefined);
  assert.equal(cache.size, 0);
  await know(KEY, SECRET);
});

Deno.test("a look-up that throws at once fails like any other", async () => {
  let isAway = true;
  const error = new Error("PostgreSQL is away");
  const cache = new ConfigCache({
    load: () => {
      if (isAway) throw error;
      return Promise.resolve(OPEN);
    },
  });
  await assert.rejects(cache.get(KEY), error);
  isAway = false;
  assert.deepEqual(await cache.get(KEY), OPEN);
});

Deno.test("that there is no such queue is not kept", async () => {
  const { cache, loads, know } = bench();
  const asked = cache.get(KEY);
  loads.shift()!.resolve(undefined);
  assert.equal(await asked, undefined);
  assert.equal(cache.size, 0);
  await know(KEY, OPEN);
});

Deno.test("a drop touches its tenant and queue, and without a tenant every tenant's", async () => {
  const { cache, know } = bench();
  const keys = [KEY, { ...KEY, tenant: B }, { ...KEY, queue: "other" }];
  const known = () => keys.map((key) => cache.peek(key) !== undefined);
  for (const key of keys) await know(key, OPEN);
  cache.drop(A, "q");
  cache.drop(A, "unknown");
  assert.deepEqual(known(), [false, true, true]);
  await know(KEY, OPEN);
  cache.drop(undefined, "q");
  assert.deepEqual(known(), [false, false, true]);
  assert.equal(cache.lastKnown(KEY), undefined);
  assert.equal(cache.size, 1);
});

Deno.test("a look-up under way when its entry is dropped puts nothing back", async () => {
  for (const drop of ["one", "all"] as const) {
    const { cache, loads } = bench();
    const before = cache.get(KEY);
    if (drop === "one") cache.drop(A, "q");
    else cache.dropAll();
    loads.shift()!.resolve(OPEN);
    assert.deepEqual(await before, OPEN);
    assert.equal(cache.peek(KEY), undefined);
    assert.equal(cache.lastKnown(KEY), undefined);
    assert.equal(cache.size, 0);
  }
});

Deno.test("an old look-up that finds no queue does not remove the entry made since", async () => {
  const { cache, loads } = bench();
  const before = cache.get(KEY);
  cache.drop(A, "q");
  const after = cache.get(KEY);
  loads[0]!.resolve(undefined);
  assert.equal(await before, undefined);
  loads[1]!.resolve(SECRET);
  assert.deepEqual(await after, SECRET);
  assert.deepEqual(cache.peek(KEY), SECRET);
});

Deno.test("who asks after a drop gets a look-up of their own, whichever ends first", async () => {
  for (const drop of ["one", "all"] as const) {
    for (const first of ["old", "new"] as const) {
      const { cache, loads } = bench();
      const before = cache.get(KEY);
      if (drop === "one") cache.drop(A, "q");
      else cache.dropAll();
      const after = [cache.get(KEY), cache.get(KEY)];
      assert.equal(loads.length, 2);
      const [older, newer] = loads;
      if (first === "old") {
        older!.resolve(OPEN);
        await before;
        newer!.resolve(SECRET);
      } else {
        newer!.resolve(SECRET);
        await Promise.all(after);
        older!.resolve(OPEN);
      }
      assert.deepEqual(await before, OPEN);
      assert.deepEqual(await Promise.all(after), [SECRET, SECRET]);
      await settle();
      assert.deepEqual(cache.peek(KEY), SECRET);
      assert.deepEqual(cache.lastKnown(KEY), SECRET);
    }
  }
});

Deno.test("an old look-up that fails does not disturb the new one", async () => {
  const { cache, loads } = bench();
  const before = cache.get(KEY);
  cache.dropAll();
  const after = cache.get(KEY);
  loads[0]!.reject(new Error("gone"));
  await assert.rejects(before);
  const third = cache.get(KEY);
  assert.equal(loads.length, 2);
  loads[1]!.resolve(SECRET);
  assert.deepEqual(await Promise.all([after, third]), [SECRET, SECRET]);
  assert.deepEqual(cache.peek(KEY), SECRET);
});

Deno.test("when all are dropped, what was last known stays until it is known to change", async () => {
  const { cache, loads, know } = bench();
  await know(KEY, OPEN);
  cache.dropAll();
  assert.equal(cache.peek(KEY), undefined);
  assert.deepEqual(cache.lastKnown(KEY), OPEN);
  const asked = cache.get(KEY);
  loads.shift()!.reject(new Error("PostgreSQL is away"));
  await assert.rejects(asked);
  assert.equal(cache.peek(KEY), undefined);
  assert.deepEqual(cache.lastKnown(KEY), OPEN);
  cache.drop(A, "q");
  assert.equal(cache.lastKnown(KEY), undefined);
});

Deno.test("a queue that is gone when it is looked up again is forgotten", async () => {
  const { cache, loads, know } = bench();
  await know(KEY, OPEN);
  cache.dropAll();
  const asked = cache.get(KEY);
  loads.shift()!.resolve(undefined);
  assert.equal(await asked, undefined);
  assert.equal(cache.lastKnown(KEY), undefined);
  assert.equal(cache.size, 0);
});

Deno.test("no more queues are kept than the most, the oldest go first", async () => {
  const { cache, loads, know } = bench(3);
  const key = (i: number) => ({ tenant: A, queue: `q${i}` });
  for (let i = 0; i < 10; i++) await know(key(i), OPEN);
  assert.equal(cache.size, 3);
  assert.deepEqual([6, 7, 8, 9].map((i) => cache.peek(key(i)) !== undefined), [
    false,
    true,
    true,
    true,
  ]);
  // A look-up that was crowded out still answers who asked, and puts nothing back.
  const asked = cache.get(key(10));
  const others = [11, 12, 13].map((i) => cache.get(key(i)));
  loads.splice(0).forEach(({ resolve }) => resolve(SECRET));
  assert.deepEqual(await asked, SECRET);
  await Promise.all(others);
  assert.equal(cache.size, 3);
  assert.equal(cache.peek(key(10)), undefined);
});

Deno.test("no answer is older than the last drop before the question", async () => {
  const step = fc.constantFrom("configure", "dropAll", "get", "answer", "fail", "peek");
  await fc.assert(fc.asyncProperty(
    fc.array(fc.tuple(step, fc.nat(3)), { maxLength: 60 }),
    async (steps) => {
      /** The configuration in PostgreSQL, as a lease time that only goes up. */
      let stored = 1;
      /** What a look-up that begins now must see at least. */
      let floor = 0;
      const loads: { seen: number; resolve: (facts: QueueFacts) => void; reject: () => void }[] =
        [];
      const cache = new ConfigCache({
        load: () => new Promise((resolve, reject) => loads.push({ seen: stored, resolve, reject })),
      });
      const asked: Promise<void>[] = [];
      for (const [kind, which] of steps) {
        if (kind === "configure") {
          stored++;
          cache.drop(A, "q");
          floor = stored;
        } else if (kind === "dropAll") {
          cache.dropAll();
          floor = stored;
        } else if (kind === "get") {
          const least = floor;
          asked.push(
            cache.get(KEY).then(
              (facts) => assert(facts!.leaseSeconds >= least, `${facts!.leaseSeconds} < ${least}`),
              () => {},
            ),
          );
        } else if (kind === "peek") {
          const facts = cache.peek(KEY);
          assert(facts === undefined || facts.leaseSeconds >= floor);
        } else {
          for (const { seen, resolve, reject } of loads.splice(which, 1)) {
            if (kind === "fail") reject();
            else resolve({ leaseSeconds: seen, encryptionEnabled: false });
          }
          await settle();
        }
      }
      for (const { seen, resolve } of loads) {
        resolve({ leaseSeconds: seen, encryptionEnabled: false });
      }
      await Promise.all(asked);
    },
  ));
});
