import assert from "node:assert/strict";
import { settle, VirtualClock } from "../../simulation/virtual_clock.ts";
import { StoreDataError, StoreUnavailableError } from "../store/store.ts";
import { Batcher, type BatcherOptions } from "./batcher.ts";

/** A call, written as lane, name and key: `a1:k`. */
type Call = string;

/** A statement that is under way. */
interface Statement {
  readonly calls: readonly Call[];
  readonly answer: () => Promise<void>;
  readonly fail: (error: Error) => Promise<void>;
}

const LIMITS = { statementsMax: 2, callsMax: 100, itemsMax: 4, charactersMax: 100 };

/** A batcher over statements that end when a test says so. */
class Bench {
  readonly clock = new VirtualClock();
  readonly statements: Statement[] = [];
  readonly answers = new Map<Call, string>();
  readonly batcher: Batcher<Call, string>;

  constructor(options: Partial<BatcherOptions<Call, string>> = {}) {
    this.batcher = new Batcher<Call, string>({
      run: (calls) =>
        new Promise((resolve, reject) => {
          this.statements.push({
            calls,
            answer: () => {
              resolve(calls.map((call) => `did ${call}`));
              return settle();
            },
            fail: (error) => {
              reject(error);
              return settle();
            },
          });
        }),
      laneOf: (call) => call[0]!,
      sizeOf: () => ({ items: 1, characters: 1 }),
      limits: LIMITS,
      clock: this.clock,
      ...options,
    });
  }

  call(...calls: readonly Call[]): void {
    for (const call of calls) {
      this.batcher.call(call).then(
        (answer) => this.answers.set(call, answer),
        (error) => this.answers.set(call, error.message),
      );
    }
  }

  get sent(): readonly (readonly Call[])[] {
    return this.statements.map(({ calls }) => calls);
  }
}

Deno.test("a call goes at once while few statements are under way", () => {
  const bench = new Bench();
  bench.call("a1");
  assert.deepEqual(bench.sent, [["a1"]]);
  bench.call("a2");
  assert.deepEqual(bench.sent, [["a1"], ["a2"]]);
});

Deno.test("what arrives while statements are under way leaves together, in its order", async () => {
  const bench = new Bench();
  bench.call("a1", "a2", "a3", "a4", "a5");
  assert.deepEqual(bench.sent, [["a1"], ["a2"]]);
  await bench.statements[1]!.answer();
  assert.deepEqual(bench.sent.slice(2), [["a3", "a4", "a5"]]);
  await bench.statements[2]!.answer();
  assert.deepEqual(Object.fromEntries(bench.answers), {
    a2: "did a2",
    a3: "did a3",
    a4: "did a4",
    a5: "did a5",
  });
});

Deno.test("a statement holds no more items and no more text than its bounds", async () => {
  const sizeOf = (call: Call) => ({
    items: call.includes("many") ? 5 : 1,
    characters: call.includes("long") ? 60 : 1,
  });
  const bench = new Bench({ sizeOf, limits: { ...LIMITS, statementsMax: 1 } });
  bench.call("a0", "a1", "a2", "a3", "a4", "a5", "a many", "a6", "a long 1", "a long 2");
  for (let i = 0; i < bench.statements.length; i++) await bench.statements[i]!.answer();
  assert.deepEqual(bench.sent, [
    ["a0"],
    ["a1", "a2", "a3", "a4"],
    ["a5"],
    ["a many"],
    ["a6", "a long 1"],
    ["a long 2"],
  ]);
});

Deno.test("a statement is for no more calls than its bound", async () => {
  const bench = new Bench({ limits: { ...LIMITS, statementsMax: 1, callsMax: 2 } });
  bench.call("a0", "a1", "a2", "a3");
  for (let i = 0; i < bench.statements.length; i++) await bench.statements[i]!.answer();
  assert.deepEqual(bench.sent, [["a0"], ["a1", "a2"], ["a3"]]);
});

Deno.test("lanes share no statement, and do not wait for each other", async () => {
  const bench = new Bench({ limits: { ...LIMITS, statementsMax: 1 } });
  bench.call("a0", "a1", "b1", "a2", "b2", "c1");
  assert.deepEqual(bench.sent, [["a0"], ["b1"], ["c1"]]);
  await bench.statements[1]!.answer();
  assert.deepEqual(bench.sent.slice(3), [["b2"]]);
  await bench.statements[0]!.answer();
  assert.deepEqual(bench.sent.slice(4), [["a1", "a2"]]);
});

Deno.test("calls with a key in common share no statement, and none overtakes another", async () => {
  const bench = new Bench({
    keysOf: (call) => call.slice(3),
    limits: { ...LIMITS, statementsMax: 1 },
  });
  bench.call("a0:x", "a1:x", "a2:yy", "a3:zx", "a4:w", "a5:x");
  for (let i = 0; i < bench.statements.length; i++) await bench.statements[i]!.answer();
  assert.deepEqual(bench.sent, [["a0:x"], ["a1:x", "a2:yy"], ["a3:zx", "a4:w"], ["a5:x"]]);
});

Deno.test("a refused statement is tried in parts, so that only the call at fault fails", async () => {
  const sent: string[] = [];
  const bench = new Bench({
    run: (calls) => {
      sent.push(calls.join(" "));
      const bad = calls.find((call) => call.includes("bad"));
      return bad === undefined
        ? Promise.resolve(calls.map((call) => `did ${call}`))
        : Promise.reject(new StoreDataError(`refused ${bad}`));
    },
    limits: { ...LIMITS, statementsMax: 1 },
  });
  bench.call("a0", "a1", "a2", "a bad", "a3");
  await settle();
  assert.deepEqual(Object.fromEntries(bench.answers), {
    "a0": "did a0",
    "a1": "did a1",
    "a2": "did a2",
    "a bad": "refused a bad",
    "a3": "did a3",
  });
  assert.deepEqual(sent, ["a0", "a1 a2 a bad a3", "a1 a2", "a bad a3", "a bad", "a3"]);
});

Deno.test("where PostgreSQL is away all calls of a statement fail, and none is tried again", async () => {
  const bench = new Bench({ limits: { ...LIMITS, statementsMax: 1 } });
  bench.call("a0", "a1", "a2");
  await bench.statements[0]!.answer();
  await bench.statements[1]!.fail(new StoreUnavailableError("away"));
  assert.deepEqual(bench.sent, [["a0"], ["a1", "a2"]]);
  assert.deepEqual(Object.fromEntries(bench.answers), { a0: "did a0", a1: "away", a2: "away" });
});

Deno.test("what has waited long for a statement without an answer fails with it", async () => {
  const bench = new Bench({ limits: { ...LIMITS, statementsMax: 1 } });
  bench.call("a0", "a1", "a2");
  await bench.clock.advance(4900);
  bench.call("a3");
  await bench.clock.advance(100);
  await bench.statements[0]!.fail(new StoreUnavailableError("no answer in 5000 ms"));
  assert.deepEqual([...bench.answers.keys()].sort(), ["a0", "a1", "a2"]);
  assert.deepEqual(bench.sent, [["a0"], ["a3"]]);
});

Deno.test("calls go on after statements that failed", async () => {
  const bench = new Bench();
  bench.call("a0", "a1");
  for (const { fail } of [...bench.statements]) await fail(new StoreUnavailableError("away"));
  bench.call("a2", "a3");
  assert.deepEqual(bench.sent.slice(2), [["a2"], ["a3"]]);
});
