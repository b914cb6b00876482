import assert from "node:assert/strict";
import fc from "fast-check";
import { Prng } from "../../simulation/prng.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { TENANT, testItem, useTestStores } from "../../testing/test_store.ts";
import {
  type PushItem,
  type PushResult,
  type Store,
  StoreDataError,
  StoreUnavailableError,
  type TenantId,
} from "../store/store.ts";
import { FakeStore } from "../testing/fake_store.ts";
import { BatchedPushes } from "./batched_pushes.ts";

const open = useTestStores();

const LIMITS = { statementsMax: 1, callsMax: 100, itemsMax: 1000, charactersMax: 1_000_000 };

/** The same store; the pushes that reach it are noted. */
function spy(store: Pick<Store, "push">) {
  const statements: { tenant: TenantId; items: readonly PushItem[] }[] = [];
  return {
    statements,
    push(tenant: TenantId, items: readonly PushItem[]) {
      statements.push({ tenant, items });
      return store.push(tenant, items);
    },
  };
}

function queued({ messageId }: PushItem) {
  return { status: "queued", messageId };
}

Deno.test("pushes that arrive together share a statement, and each gets what is its own", async () => {
  const clock = new VirtualClock();
  const store = spy(new FakeStore({ clock }));
  const pushes = new BatchedPushes({ store, clock, limits: LIMITS });
  const calls = [
    [testItem("1")],
    [testItem("2", { partition: "a" }), testItem("3", { partition: "b" })],
    [testItem("4", { partition: "b" }), testItem("2", { partition: "a" })],
    [testItem("1", { partition: "c" }), testItem("5", { queue: "others", partition: "b" })],
  ] as const;
  const results = await Promise.all(calls.map((items) => pushes.push(TENANT, items)));
  assert.equal(store.statements.length, 2);
  assert.deepEqual(results.map(({ outcomes }) => outcomes), [
    calls[0].map(queued),
    calls[1].map(queued),
    [queued(calls[2][0]), { status: "duplicate", messageId: calls[1][0].messageId }],
    calls[3].map(queued),
  ]);
  assert.deepEqual(results.map(({ touched }) => touched), [
    [{ queue: "orders", partition: "Default" }],
    [{ queue: "orders", partition: "a" }, { queue: "orders", partition: "b" }],
    [{ queue: "orders", partition: "b" }],
    [{ queue: "orders", partition: "c" }, { queue: "others", partition: "b" }],
  ]);
});

Deno.test("pushes of different tenants share no statement", async () => {
  const clock = new VirtualClock();
  const store = spy(new FakeStore({ clock }));
  const pushes = new BatchedPushes({ store, clock, limits: LIMITS });
  const tenants = ["a", "a", "b", "a", "b"];
  await Promise.all(tenants.map((tenant, i) => pushes.push(tenant, [testItem(`${i}`)])));
  const told = store.statements.map(({ tenant, items }) =>
    [tenant, ...items.map(({ transactionId }) => transactionId)].join(" ")
  );
  assert.deepEqual(told, ["a 0", "b 2", "a 1 3", "b 4"]);
});

Deno.test("each push hears only of the queues whose encryption it has itself misjudged", async () => {
  const clock = new VirtualClock();
  const fake = new FakeStore({ clock });
  await fake.configure(TENANT, { queue: "sealed", options: { encryptionEnabled: true } });
  const pushes = new BatchedPushes({ store: fake, clock, limits: LIMITS });
  const [, right, wrong, other] = await Promise.all([
    pushes.push(TENANT, [testItem("0")]),
    pushes.push(TENANT, [testItem("1", { queue: "sealed", encrypted: true })]),
    pushes.push(TENANT, [testItem("2", { queue: "sealed" }), testItem("3")]),
    pushes.push(TENANT, [testItem("4")]),
  ]);
  assert.equal(right?.misjudged, undefined);
  assert.deepEqual(right?.outcomes.map(({ status }) => status), ["queued"]);
  assert.deepEqual(wrong?.misjudged, ["sealed"]);
  assert.deepEqual(wrong?.outcomes.map(({ status }) => status), ["failed", "queued"]);
  assert.equal(other?.misjudged, undefined);
});

Deno.test("in PostgreSQL, joined pushes keep their order, and a refused one fails alone", async () => {
  await using fixture = await open();
  const { sql, schema } = fixture;
  const store = spy(fixture.store);
  const pushes = new BatchedPushes({ store, clock: new VirtualClock(), limits: LIMITS });
  const items = ["1", "2", "3", "4", "5", "2"].map((id) => testItem(id));
  items[3] = { ...items[3]!, messageId: "no id" };
  const results = await Promise.allSettled(items.map((item) => pushes.push(TENANT, [item])));
  assert.deepEqual(
    results.map((result) =>
      result.status === "rejected" ? "rejected" : result.value.outcomes[0]!.status
    ),
    ["queued", "queued", "queued", "rejected", "queued", "duplicate"],
  );
  const rows = await sql.unsafe(
    `select transaction_id, number::integer from ${schema}.message order by number`,
  );
  assert.deepEqual(rows.map((row) => `${row["number"]}: ${row["transaction_id"]}`), [
    "1: 1",
    "2: 2",
    "3: 3",
    "4: 5",
  ]);
  // One alone, then five, which are tried in parts.
  assert.deepEqual(store.statements.map(({ items }) => items.length), [1, 5, 2, 3, 1, 2]);
});

Deno.test("in PostgreSQL, each joined push is told when what it has stored can be taken", async () => {
  await using fixture = await open();
  const { store } = fixture;
  await store.configure(TENANT, { queue: "later", options: { delayedProcessing: 3600 } });
  const pushes = new BatchedPushes({ store, clock: new VirtualClock(), limits: LIMITS });
  const [, now, later] = await Promise.all([
    pushes.push(TENANT, [testItem("0")]),
    pushes.push(TENANT, [testItem("1")]),
    pushes.push(TENANT, [testItem("2", { queue: "later" })]),
  ]);
  assert.deepEqual(now?.touched, [{ queue: "orders", partition: "Default" }]);
  const [touched, ...others] = later!.touched;
  assert.deepEqual(others, []);
  assert.equal(touched?.queue, "later");
  assert.ok(touched.delayMs! > 3_500_000, String(touched.delayMs));
});

/** A push of a producer, which awaits one push after the other. */
interface Planned {
  readonly producer: number;
  readonly items: readonly { readonly partition: string; readonly transaction: number }[];
  readonly isBad: boolean;
  readonly encrypted: boolean;
}

const planned: fc.Arbitrary<Planned> = fc.record({
  producer: fc.nat({ max: 5 }),
  items: fc.array(
    fc.record({ partition: fc.constantFrom("a", "b", "c"), transaction: fc.nat({ max: 30 }) }),
    { maxLength: 4 },
  ),
  isBad: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  encrypted: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
});

/** What became of a push, so that two can be compared. */
function toldOf({ outcomes, touched, misjudged = [] }: PushResult) {
  const statuses = outcomes.map(({ status, messageId }) => ({ status, messageId }));
  return { outcomes: statuses, touched, misjudged };
}

Deno.test("batched pushes end as they would one by one, in the order in which they took effect", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(planned, { minLength: 1, maxLength: 60, size: "max" }),
      fc.nat(),
      fc.integer({ min: 1, max: 3 }),
      async (plan, seed, statementsMax) => {
        const clock = new VirtualClock();
        const prng = new Prng(seed);
        const fake = new FakeStore({ clock });
        const pause = () =>
          new Promise<void>((resolve) => clock.setTimer(prng.integer(0, 5), resolve));
        const effective: PushItem[] = [];
        const store: Pick<Store, "push"> = {
          async push(tenant, items) {
            await pause();
            if (items.some(({ payload }) => payload === "bad")) throw new StoreDataError("bad");
            if (prng.chance(0.05)) throw new StoreUnavailableError("away");
            effective.push(...items);
            const result = await fake.push(tenant, items);
            await pause();
            if (prng.chance(0.05)) throw new StoreUnavailableError("no answer");
            return result;
          },
        };
        const limits = { statementsMax, callsMax: 6, itemsMax: 10, charactersMax: 1000 };
        const pushes = new BatchedPushes({ store, clock, limits });
        const calls = plan.map(({ producer, items, isBad, encrypted }, i) => ({
          producer,
          isBad: isBad && items.length > 0,
          items: items.map(({ partition, transaction }, k): PushItem => ({
            queue: "q",
            partition,
            messageId: `${i}.${k}`,
            transactionId: `${transaction}`,
            payload: isBad ? "bad" : "1",
            encrypted,
          })),
        }));
        const results = new Map<number, PushResult | Error>();
        const producers = [...new Set(plan.map(({ producer }) => producer))];
        const working = producers.map(async (own) => {
          for (const [i, { producer, items }] of calls.entries()) {
            if (producer !== own) continue;
            await pushes.push(TENANT, items).then(
              (result) => results.set(i, result),
              (error) => results.set(i, error),
            );
          }
        });
        await clock.advance(100_000);
        await Promise.all(working);

        const reference = new FakeStore({ clock });
        const order = [...new Set(effective.map(({ messageId }) => Number.parseInt(messageId)))];
        const expected = new Map<number, PushResult>();
        for (const i of order) expected.set(i, await reference.push(TENANT, calls[i]!.items));
        assert.deepEqual(fake.stored("q"), reference.stored("q"));
        for (const [i, { isBad, items, producer }] of calls.entries()) {
          const result = results.get(i);
          if (result instanceof StoreUnavailableError) continue;
          if (isBad) assert.ok(result instanceof StoreDataError);
          else if (items.length > 0) {
            assert.deepEqual(toldOf(result as PushResult), toldOf(expected.get(i)!));
          }
          // A producer's own pushes took effect in its order.
          const before = order.slice(0, Math.max(order.indexOf(i), 0));
          assert.ok(before.every((other) => calls[other]!.producer !== producer || other < i));
        }
      },
    ),
    { numRuns: 200 },
  );
});
