import assert from "node:assert/strict";
import fc from "fast-check";
import { Prng } from "../../simulation/prng.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { TENANT, testItem, useTestStores } from "../../testing/test_store.ts";
import {
  type Ack,
  type AckOutcome,
  type AckResult,
  type PoppedBatch,
  type Store,
  StoreDataError,
  type TenantId,
} from "../store/store.ts";
import { FakeStore } from "../testing/fake_store.ts";
import { BatchedAcks } from "./batched_acks.ts";

const open = useTestStores();

const LIMITS = { statementsMax: 1, callsMax: 100, itemsMax: 1000, charactersMax: 1_000_000 };

/** The same store; the acks that reach it are noted. */
function spy(store: Pick<Store, "ack">) {
  const statements: (readonly Ack[])[] = [];
  return {
    statements,
    ack(tenant: TenantId, acks: readonly Ack[]) {
      statements.push(acks);
      return store.ack(tenant, acks);
    },
  };
}

/** Pushes `count` messages to each partition and leases them to each group, in a certain order. */
async function leaseAll(
  store: Store,
  { partitions, groups, count }: {
    readonly partitions: readonly string[];
    readonly groups: readonly string[];
    readonly count: number;
  },
): Promise<(PoppedBatch & { readonly consumerGroup: string })[]> {
  const batches = [];
  for (const partition of partitions) {
    for (let i = 0; i < count; i++) {
      await store.push(TENANT, [testItem(`${partition}${i}`, { partition })]);
    }
    for (const consumerGroup of groups) {
      const { batch } = await store.pop(TENANT, {
        queue: "orders",
        partition,
        consumerGroup,
        start: "all",
        batch: count,
        autoAck: false,
      });
      batches.push({ ...batch!, consumerGroup });
    }
  }
  return batches;
}

/** Says something of the message at `index` of a leased batch. */
function ackOf(
  { partitionId, leaseId, consumerGroup, messages }: PoppedBatch & {
    readonly consumerGroup: string;
  },
  index: number,
  status: Ack["status"] = "completed",
): Ack {
  const { transactionId } = messages[index]!;
  return { partitionId, leaseId: leaseId!, consumerGroup, transactionId, status };
}

const DONE: AckOutcome = { success: true, leaseReleased: false, dlq: false, noop: false };
const RELEASED: AckOutcome = { ...DONE, leaseReleased: true };

Deno.test("in PostgreSQL, acks of several cursors share a statement, each with its own outcome", async () => {
  await using fixture = await open();
  const [a, aOther, b, bOther] = await leaseAll(fixture.store, {
    partitions: ["a", "b"],
    groups: ["g", "h"],
    count: 2,
  });
  await fixture.store.push(TENANT, [testItem("more", { partition: "b" })]);
  const store = spy(fixture.store);
  const acks = new BatchedAcks({ store, clock: new VirtualClock(), limits: LIMITS });
  const results = await Promise.all([
    acks.ack(TENANT, [ackOf(a!, 0)]),
    acks.ack(TENANT, [ackOf(aOther!, 0), ackOf(aOther!, 1)]),
    acks.ack(TENANT, [{ ...ackOf(b!, 0), leaseId: "another" }]),
    acks.ack(TENANT, [ackOf(bOther!, 0), ackOf(bOther!, 1)]),
  ]);
  assert.equal(store.statements.length, 2);
  assert.deepEqual(results.map(({ outcomes }) => outcomes), [
    [DONE],
    [RELEASED, RELEASED],
    [{ ...DONE, success: false, error: "invalid or expired lease" }],
    [RELEASED, RELEASED],
  ]);
  // Told once: whoever hears it announces it.
  assert.deepEqual(results.map(({ available }) => available), [
    [],
    [{ queue: "orders", partition: "b", consumerGroup: "h" }],
    [],
    [],
  ]);
});

Deno.test("acks of one cursor share no statement, however its partition is written", async () => {
  await using fixture = await open();
  const [a, b] = await leaseAll(fixture.store, {
    partitions: ["a", "b"],
    groups: ["g"],
    count: 3,
  });
  const store = spy(fixture.store);
  const acks = new BatchedAcks({ store, clock: new VirtualClock(), limits: LIMITS });
  const results = await Promise.all([
    acks.ack(TENANT, [ackOf(b!, 0)]),
    acks.ack(TENANT, [ackOf(a!, 0)]),
    acks.ack(TENANT, [{ ...ackOf(a!, 1, "retry"), partitionId: a!.partitionId.toUpperCase() }]),
    acks.ack(TENANT, [ackOf(a!, 2)]),
  ]);
  assert.deepEqual(store.statements.map((acks) => acks.map((ack) => ack.transactionId)), [
    ["b0"],
    ["a0"],
    ["a1"],
    ["a2"],
  ]);
  const INVALID = { ...DONE, success: false, error: "invalid or expired lease" };
  assert.deepEqual(results.flatMap(({ outcomes }) => outcomes), [DONE, DONE, RELEASED, INVALID]);
});

/** A call of acks: each of a message of one of the leased batches. */
interface Planned {
  readonly acks: readonly {
    readonly batch: number;
    readonly index: number;
    readonly status: Ack["status"];
    readonly withLease: boolean;
  }[];
  readonly isBad: boolean;
  readonly pauseMs: number;
}

const planned: fc.Arbitrary<Planned> = fc.record({
  acks: fc.array(
    fc.record({
      batch: fc.nat({ max: 5 }),
      index: fc.nat({ max: 4 }),
      status: fc.constantFrom<Ack["status"]>("completed", "completed", "completed", "retry"),
      withLease: fc.boolean(),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  isBad: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  pauseMs: fc.nat({ max: 3 }),
});

Deno.test("batched acks end as they would one by one, in the order in which they took effect", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(planned, { minLength: 1, maxLength: 40, size: "max" }),
      fc.nat(),
      fc.integer({ min: 1, max: 3 }),
      async (plan, seed, statementsMax) => {
        const clock = new VirtualClock();
        const prng = new Prng(seed);
        const setup = { partitions: ["a", "b", "c"], groups: ["g", "h"], count: 5 };
        const fake = new FakeStore({ clock, leaseMs: 1e9 });
        const batches = await leaseAll(fake, setup);
        const reference = new FakeStore({ clock, leaseMs: 1e9 });
        await leaseAll(reference, setup);
        const calls = plan.map(({ acks, isBad }, i) =>
          acks.map(({ batch, index, status, withLease }): Ack => {
            const { leaseId, ...ack } = ackOf(batches[batch]!, index, status);
            const error = `${isBad ? "bad" : "call"} ${i}`;
            return { ...ack, error, ...(withLease ? { leaseId: leaseId! } : {}) };
          })
        );
        const pause = () =>
          new Promise<void>((resolve) => clock.setTimer(prng.integer(0, 5), resolve));
        const order: number[] = [];
        const store: Pick<Store, "ack"> = {
          async ack(tenant, acks) {
            await pause();
            if (acks.some(({ error }) => error?.startsWith("bad"))) throw new StoreDataError("bad");
            const callers = [...new Set(acks.map(({ error }) => Number(error!.split(" ")[1])))];
            order.push(...callers);
            const cursors = callers.map((i) =>
              new Set(calls[i]!.map((ack) => `${ack.partitionId} ${ack.consumerGroup}`))
            );
            const count = cursors.reduce((sum, { size }) => sum + size, 0);
            assert.equal(new Set(cursors.flatMap((names) => [...names])).size, count);
            const result = await fake.ack(tenant, acks);
            await pause();
            return result;
          },
        };
        const limits = { statementsMax, callsMax: 6, itemsMax: 8, charactersMax: 1000 };
        const acks = new BatchedAcks({ store, clock, limits });
        const results: Promise<AckResult | Error>[] = [];
        for (const [i, call] of calls.entries()) {
          results.push(acks.ack(TENANT, call).catch((error) => error));
          await clock.advance(plan[i]!.pauseMs);
        }
        await clock.advance(100_000);

        const expected = new Map<number, AckResult>();
        for (const i of order) expected.set(i, await reference.ack(TENANT, calls[i]!));
        for (const [i, { isBad }] of plan.entries()) {
          const result = await results[i]!;
          if (isBad) assert.ok(result instanceof StoreDataError);
          else assert.deepEqual((result as AckResult).outcomes, expected.get(i)!.outcomes);
        }
        for (const group of setup.groups) {
          assert.deepEqual(fake.takeable("orders", group), reference.takeable("orders", group));
        }
      },
    ),
    { numRuns: 200 },
  );
});
