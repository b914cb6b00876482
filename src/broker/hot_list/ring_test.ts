import assert from "node:assert/strict";
import fc from "fast-check";
import { Budget } from "./budget.ts";
import { CandidateRing } from "./ring.ts";
import type { Taken } from "./taken.ts";

function ringOf(...partitions: string[]): CandidateRing {
  const ring = new CandidateRing(new Budget(1e9));
  for (const partition of partitions) ring.mark(partition);
  return ring;
}

Deno.test("candidates are taken in the order in which they were marked, and go last", () => {
  const ring = ringOf("a", "b", "c");
  assert.deepEqual(ring.take(2).partitions, ["a", "b"]);
  assert.deepEqual(ring.take(2).partitions, ["c", "a"]);
  assert.deepEqual(ring.take(9).partitions, ["b", "c", "a"]);
  assert.equal(ring.size, 3);
});

Deno.test("an empty ring gives nothing, and nothing is there to settle", () => {
  const taken = ringOf().take(4);
  assert.deepEqual(taken.partitions, []);
  taken.settle({ claimed: ["a"] });
});

Deno.test("a mark of a candidate does not move it", () => {
  const ring = ringOf("a", "b");
  ring.mark("a");
  assert.deepEqual(ring.take(2).partitions, ["a", "b"]);
});

Deno.test("candidates that a pop found empty are cleared", () => {
  const ring = ringOf("a", "b", "c");
  ring.take(2).settle({ claimed: [] });
  assert.deepEqual(ring.take(9).partitions, ["c"]);
});

Deno.test("a candidate that was marked since it was taken is not cleared", () => {
  const ring = ringOf("a", "b");
  const taken = ring.take(2);
  ring.mark("b");
  taken.settle({ claimed: [] });
  assert.deepEqual(ring.take(9).partitions, ["b"]);
});

Deno.test("a candidate that was cleared and marked meanwhile is not cleared", () => {
  const ring = ringOf("a");
  const [first, second] = [ring.take(1), ring.take(1)];
  first.settle({ claimed: [] });
  assert.equal(ring.size, 0);
  ring.mark("a");
  second.settle({ claimed: [] });
  assert.deepEqual(ring.take(9).partitions, ["a"]);
});

Deno.test("what was claimed is cleared, what was not tried is next, in its order", () => {
  const ring = ringOf("a", "b", "c", "d", "e");
  // It tried a in vain, and did not come to c and d.
  ring.take(4).settle({ claimed: ["b"] });
  assert.deepEqual(ring.take(9).partitions, ["c", "d", "e"]);
});

Deno.test("what was claimed and holds more stays, and goes last", () => {
  const ring = ringOf("a", "b", "c");
  ring.take(2).settle({ claimed: ["a"], left: ["a"] });
  assert.deepEqual(ring.take(9).partitions, ["b", "c", "a"]);
});

Deno.test("a claim of another partition means that all candidates were tried", () => {
  const ring = ringOf("a", "b");
  ring.take(2).settle({ claimed: ["z"] });
  assert.equal(ring.size, 0);
  for (const partition of ["a", "b", "c"]) ring.mark(partition);
  ring.take(2).settle({ claimed: ["a", "z"] });
  assert.deepEqual(ring.take(9).partitions, ["c"]);
});

Deno.test("what another pop cleared meanwhile does not come back", () => {
  const ring = ringOf("a", "b", "c");
  const taken = ring.take(2);
  ring.take(3).settle({ claimed: [] });
  taken.settle({ claimed: ["a"] });
  assert.deepEqual(ring.take(9).partitions, []);
  ring.mark("b");
  assert.deepEqual(ring.take(9).partitions, ["b"]);
});

Deno.test("a pop that failed leaves its candidates", () => {
  const ring = ringOf("a", "b");
  ring.take(2);
  assert.deepEqual(ring.take(2).partitions, ["a", "b"]);
});

Deno.test("what is dropped holds nothing and takes no marks", () => {
  const budget = new Budget(1e9);
  const ring = new CandidateRing(budget);
  ring.mark("a");
  const taken = ring.take(1);
  ring.drop();
  ring.mark("b");
  taken.settle({ claimed: ["z"], left: ["a"] });
  assert.equal(ring.size, 0);
  assert.equal(budget.bytes, 0);
});

Deno.test("what finds no room is left out and counted, and room comes back", () => {
  const budget = new Budget(300);
  const ring = new CandidateRing(budget);
  for (const partition of ["a", "b", "c", "d"]) ring.mark(partition);
  assert.deepEqual(ring.take(9).partitions, ["a", "b"]);
  assert.equal(budget.refused, 2);
  assert(budget.bytes > 0 && budget.bytes <= 300);
  ring.mark("a");
  assert.equal(budget.refused, 2);
  ring.take(9).settle({ claimed: [] });
  assert.equal(budget.bytes, 0);
  ring.mark("d");
  assert.deepEqual(ring.take(9).partitions, ["d"]);
});

Deno.test("clearing what was not marked since an epoch keeps the rest in order", () => {
  const ring = ringOf("a", "b", "c");
  const { epoch } = ring;
  for (const partition of ["d", "b"]) ring.mark(partition);
  ring.clearUnmarkedSince(epoch);
  assert.deepEqual(ring.take(9).partitions, ["b", "d"]);
});

/** Partitions with messages, and pops that query them while pushes go on. */
class Model {
  readonly messages = new Map<string, number>();
  readonly ring = new CandidateRing(new Budget(1e9));
  /** Pops that have taken candidates and not queried. */
  readonly taken: Taken[] = [];
  /** Pops that have queried and not settled. */
  readonly found: { readonly taken: Taken; readonly claimed: string[]; readonly left: string[] }[] =
    [];

  push(partition: string): void {
    this.messages.set(partition, (this.messages.get(partition) ?? 0) + 1);
    this.ring.mark(partition);
  }

  query(taken: Taken): void {
    const partition = taken.partitions.find((name) => this.messages.get(name)! > 0);
    const claimed = partition === undefined ? [] : [partition];
    const rest = partition === undefined ? 0 : this.messages.get(partition)! - 1;
    if (partition !== undefined) this.messages.set(partition, rest);
    this.found.push({ taken, claimed, left: rest > 0 ? claimed : [] });
  }
}

Deno.test("however pops and pushes interleave, a partition with messages stays a candidate", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("push" as const), which: fc.nat(5) }),
    fc.record({ kind: fc.constantFrom("take" as const, "query" as const), which: fc.nat(5) }),
    fc.record({ kind: fc.constant("settle" as const), which: fc.nat(5) }),
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
    const model = new Model();
    for (const { kind, which } of steps) {
      if (kind === "push") model.push(`p${which}`);
      if (kind === "take") model.taken.push(model.ring.take(1 + which));
      if (kind === "query") model.taken.splice(which, 1).forEach((taken) => model.query(taken));
      if (kind === "settle") {
        for (const { taken, ...finding } of model.found.splice(which, 1)) taken.settle(finding);
      }
      const candidates = new Set(model.ring.take(99).partitions);
      assert.equal(candidates.size, model.ring.size);
      for (const [partition, count] of model.messages) {
        if (count > 0) assert(candidates.has(partition), `${partition} is lost`);
      }
    }
  }));
});

Deno.test("every one of many busy partitions has its turn before any has a second", () => {
  const names = Array.from({ length: 100 }, (_, i) => `p${i}`);
  const ring = ringOf(...names);
  for (let round = 0; round < 3; round++) {
    const served: string[] = [];
    for (let i = 0; i < names.length; i++) {
      const taken = ring.take(16);
      const claimed = taken.partitions.slice(0, 1);
      taken.settle({ claimed });
      // It is acknowledged and holds more.
      ring.mark(claimed[0]!);
      served.push(...claimed);
    }
    assert.deepEqual(served, names);
  }
});

Deno.test("a busy partition does not keep the others waiting", () => {
  const ring = ringOf("a", "b");
  for (let i = 0; i < 10; i++) {
    const taken = ring.take(1);
    taken.settle({ claimed: taken.partitions });
    ring.mark("busy");
  }
  assert.deepEqual(ring.take(9).partitions, ["busy"]);
});

Deno.test("a ring does not grow with partitions that became idle", () => {
  const budget = new Budget(1e9);
  const ring = new CandidateRing(budget);
  for (let i = 0; i < 10_000; i++) {
    ring.mark(`p${i}`);
    const taken = ring.take(16);
    taken.settle({ claimed: taken.partitions });
  }
  assert.equal(ring.size, 0);
  assert.equal(budget.bytes, 0);
});
