import assert from "node:assert/strict";
import fc from "fast-check";
import { Prng } from "../../simulation/prng.ts";
import { systemClock } from "../../runtime/system.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { TENANT, testItem, useTestStores } from "../../testing/test_store.ts";
import type { PopQuery, PopResult, Store, TenantId } from "../store/store.ts";
import { FakeStore } from "../testing/fake_store.ts";
import { BatchedPops } from "./batched_pops.ts";

const open = useTestStores();

const LIMITS = { statementsMax: 1, callsMax: 100, itemsMax: 1000, charactersMax: 1_000_000 };
const QUERY: PopQuery = { queue: "orders", batch: 10, autoAck: false };

/** The same store; how many pops each statement was for is noted. */
function spy(store: Store) {
  const statements: number[] = [];
  return {
    statements,
    pop(tenant: TenantId, query: PopQuery) {
      statements.push(1);
      return store.pop(tenant, query);
    },
    popTogether(tenant: TenantId, queries: readonly PopQuery[]) {
      statements.push(queries.length);
      return store.popTogether(tenant, queries);
    },
    giveBack: store.giveBack.bind(store),
  };
}

/** The partitions that a pop has claimed, with their messages: `a: a1 a2`. */
function claimsOf({ batch, others = [] }: PopResult): string[] {
  return (batch === undefined ? others : [batch, ...others]).map(({ partition, messages }) =>
    `${partition}: ${messages.map(({ transactionId }) => transactionId).join(" ")}`
  );
}

/** Pushes two messages to each partition. */
async function fill(store: Store, partitions: readonly string[]): Promise<void> {
  for (const partition of partitions) {
    await store.push(TENANT, [1, 2].map((n) => testItem(`${partition}${n}`, { partition })));
  }
}

Deno.test("in PostgreSQL, pops share a statement, and each claims what it has asked for", async () => {
  await using fixture = await open();
  await fill(fixture.store, ["a", "b", "c", "d", "e", "f"]);
  const store = spy(fixture.store);
  const pops = new BatchedPops({ store, clock: new VirtualClock(), limits: LIMITS });
  const results = await Promise.all([
    pops.pop(TENANT, QUERY),
    pops.pop(TENANT, { ...QUERY, partition: "f" }),
    pops.pop(TENANT, { ...QUERY, batch: 1 }),
    pops.pop(TENANT, { ...QUERY, candidates: ['"', "e"], autoAck: true, batch: 1 }),
    pops.pop(TENANT, { ...QUERY, partitions: 2 }),
    pops.pop(TENANT, { ...QUERY, partition: "f" }),
    pops.pop(TENANT, { ...QUERY, bytesMax: 1 }),
    pops.pop(TENANT, QUERY),
  ]);
  assert.deepEqual(store.statements, [1, 7]);
  assert.deepEqual(results.map(claimsOf), [
    ["a: a1 a2"],
    ["f: f1 f2"],
    ["b: b1"],
    ["e: e1"],
    ["c: c1 c2", "d: d1 d2"],
    [],
    ["e: e2"],
    [],
  ]);
  const leases = results.flatMap(({ batch, others = [] }) =>
    [batch, ...others].flatMap((each) => each?.leaseId ?? [])
  );
  assert.equal(new Set(leases).size, 6);
});

Deno.test("what a later pop of the statement has claimed is not said to be there", async () => {
  await using fixture = await open();
  await fill(fixture.store, ["a", "b", "c", "d"]);
  const pops = new BatchedPops({
    store: fixture.store,
    clock: new VirtualClock(),
    limits: LIMITS,
  });
  const one = { ...QUERY, batch: 1, autoAck: true };
  const results = await Promise.all([
    pops.pop(TENANT, { ...QUERY, partition: "a" }),
    pops.pop(TENANT, { ...one, candidates: ["b"] }),
    pops.pop(TENANT, { ...one, candidates: ["b"] }),
    pops.pop(TENANT, { ...one, candidates: ["c"] }),
  ]);
  const hints = results.map(({ more, left = [] }) => [
    more?.partition,
    ...left.map(({ partition }) => partition),
  ]);
  // The others were asked together. What is left of b the next one has taken.
  assert.deepEqual(hints.slice(1), [[undefined], [undefined], ["d", "c"]]);
});

Deno.test("the first pops of a group that arrive together record it", async () => {
  await using fixture = await open();
  await fill(fixture.store, ["a", "b", "c"]);
  const store = spy(fixture.store);
  const pops = new BatchedPops({ store, clock: new VirtualClock(), limits: LIMITS });
  const query: PopQuery = { ...QUERY, consumerGroup: "g", start: "all" };
  const results = await Promise.all([
    pops.pop(TENANT, { ...QUERY, partition: "none" }),
    pops.pop(TENANT, query),
    pops.pop(TENANT, query),
    pops.pop(TENANT, query),
  ]);
  assert.deepEqual(store.statements, [1, 1, 2]);
  assert.deepEqual(results.flatMap(claimsOf).sort(), ["a: a1 a2", "b: b1 b2", "c: c1 c2"]);

  const other: PopQuery = { ...query, consumerGroup: "h", batch: 1 };
  const together = await fixture.store.popTogether(TENANT, [other, other]);
  assert.deepEqual(together.map(claimsOf), [["a: a1"], ["b: b1"]]);
});

Deno.test("of the first pops of a group that share a statement, the earliest counts", async () => {
  await using fixture = await open();
  const { store, sql, schema } = fixture;
  await fill(store, ["a"]);
  const query: PopQuery = { ...QUERY, consumerGroup: "g", start: "new" };
  const now = systemClock.now();
  await store.popTogether(
    TENANT,
    [0, 500_000, 100_000].map((waitedMs) => ({
      ...query,
      arrivedAt: now - waitedMs,
    })),
  );
  const [row] = await sql.unsafe(
    `select extract(epoch from clock_timestamp() - start_at) as age from ${schema}.consumer_group`,
  );
  assert.ok(Number(row!["age"]) >= 500, String(row!["age"]));
});

Deno.test("a pop that PostgreSQL refuses fails alone", async () => {
  await using fixture = await open();
  await fill(fixture.store, ["a", "b", "c"]);
  const store = spy(fixture.store);
  const pops = new BatchedPops({
    store,
    clock: new VirtualClock(),
    limits: { ...LIMITS, itemsMax: 1e12 },
  });
  const batches = [10, 10, 1e11, 10];
  const results = await Promise.allSettled(
    batches.map((batch) => pops.pop(TENANT, { ...QUERY, batch })),
  );
  assert.deepEqual(
    results.map((result) => result.status === "rejected" ? "rejected" : claimsOf(result.value)[0]),
    ["a: a1 a2", "b: b1 b2", "rejected", "c: c1 c2"],
  );
  assert.deepEqual(store.statements, [1, 3, 1, 2, 1, 1]);
});

Deno.test("pops of different queues, groups and tenants share no statement", async () => {
  const clock = new VirtualClock();
  const store = spy(new FakeStore({ clock }));
  const pops = new BatchedPops({ store, clock, limits: LIMITS });
  await Promise.all(
    [0, 1, 2].flatMap(() => [
      pops.pop(TENANT, QUERY),
      pops.pop(TENANT, { ...QUERY, queue: "others" }),
      pops.pop(TENANT, { ...QUERY, consumerGroup: "g" }),
      pops.pop("b", QUERY),
    ]),
  );
  assert.deepEqual(store.statements, [1, 1, 1, 1, 2, 2, 2, 2]);
});

const step = fc.oneof(
  fc.record({
    do: fc.constant("push" as const),
    partitions: fc.array(fc.constantFrom("a", "b", "c", "d"), { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    do: fc.constant("pop" as const),
    partition: fc.constantFrom(undefined, undefined, "a", "b"),
    partitions: fc.constantFrom(1, 1, 2),
    batch: fc.constantFrom(1, 2, 5),
    autoAck: fc.boolean(),
  }),
  fc.record({ do: fc.constant("advance" as const), ms: fc.nat({ max: 6 }) }),
);

Deno.test("batched pops end as they would one by one, in the order in which they took effect", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 60, size: "max" }),
      fc.nat(),
      fc.integer({ min: 1, max: 3 }),
      async (steps, seed, statementsMax) => {
        const clock = new VirtualClock();
        const prng = new Prng(seed);
        const fake = new FakeStore({ clock, leaseMs: 1e9 });
        const pause = () =>
          new Promise<void>((resolve) => clock.setTimer(prng.integer(0, 5), resolve));
        /** What took effect, to be done once more. */
        const effects: ((store: FakeStore) => Promise<unknown>)[] = [];
        const expected = new Map<PopQuery, PopResult>();
        const takeEffect = async (tenant: TenantId, query: PopQuery) => {
          effects.push(async (store) => expected.set(query, await store.pop(tenant, query)));
          return await fake.pop(tenant, query);
        };
        const store: ConstructorParameters<typeof BatchedPops>[0]["store"] = {
          async pop(tenant, query) {
            await pause();
            const result = await takeEffect(tenant, query);
            await pause();
            return result;
          },
          async popTogether(tenant, queries) {
            await pause();
            const results: PopResult[] = [];
            for (const query of queries) results.push(await takeEffect(tenant, query));
            await pause();
            return results;
          },
          giveBack: fake.giveBack.bind(fake),
        };
        const limits = { statementsMax, callsMax: 6, itemsMax: 10, charactersMax: 1 };
        const pops = new BatchedPops({ store, clock, limits });
        const results = new Map<PopQuery, PopResult>();
        for (const [i, step] of steps.entries()) {
          if (step.do === "advance") {
            await clock.advance(step.ms);
          } else if (step.do === "push") {
            const items = step.partitions.map((partition, k) =>
              testItem(`${i}.${k}`, { partition, messageId: `${i}.${k}` })
            );
            effects.push((store) => store.push(TENANT, items));
            await fake.push(TENANT, items);
          } else {
            const { do: _, partition, ...rest } = step;
            const query = { queue: "orders", ...rest, ...(partition && { partition }) };
            pops.pop(TENANT, query).then((result) => results.set(query, result));
          }
        }
        await clock.advance(100_000);
        const reference = new FakeStore({ clock, leaseMs: 1e9 });
        for (const effect of effects) await effect(reference);
        assert.equal(results.size, steps.filter((step) => step.do === "pop").length);
        for (const [query, { batch, others = [] }] of results) {
          const alone = expected.get(query)!;
          assert.deepEqual([batch, others], [alone.batch, alone.others ?? []]);
        }
        assert.deepEqual(fake.takeable("orders"), reference.takeable("orders"));
      },
    ),
    { numRuns: 200 },
  );
});
