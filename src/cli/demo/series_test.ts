import assert from "node:assert/strict";
import type { WakerFigures } from "./replica_client.ts";
import { type Expectation, findFaults, type Series, seriesTable } from "./series.ts";

const BEFORE: WakerFigures = {
  parked: 0,
  first_queries: 7,
  replies_at_once: 1,
  replies_by_wake: 2,
  replies_by_poll: 3,
  empty_by_timeout: 1,
};

function makeSeries(grown: Partial<WakerFigures>, replyMs: readonly number[]): Series {
  const after = { ...BEFORE };
  for (const [name, by] of Object.entries(grown)) after[name as keyof WakerFigures] += by;
  return {
    label: "with the mesh",
    rounds: replyMs.map((each) => ({ replyMs: each, pushMs: 1 })),
    before: BEFORE,
    after,
  };
}

const EXPECTED: Expectation = { count: 2, by: "wake", replyMsMax: 1000 };

Deno.test("a series of which all is true has no faults", () => {
  const series = makeSeries({ first_queries: 2, replies_by_wake: 2 }, [3, 999.9]);
  assert.deepEqual(findFaults(series, EXPECTED), []);
});

Deno.test("a reply by a poll is a fault where all are to come by a wake, and the other way", () => {
  const series = makeSeries({ first_queries: 2, replies_by_wake: 1, replies_by_poll: 1 }, [3, 4]);
  assert.deepEqual(findFaults(series, EXPECTED), [
    "with the mesh: replies_by_wake grew by 1, not by 2",
    "with the mesh: replies_by_poll grew by 1, not by 0",
  ]);
  assert.equal(findFaults(series, { ...EXPECTED, by: "poll" }).length, 2);
});

Deno.test("a reply that takes a second, a pop that nobody made and one left parked are faults", () => {
  const grown = { first_queries: 3, replies_by_wake: 2, parked: 1 };
  assert.deepEqual(findFaults(makeSeries(grown, [3, 1000]), EXPECTED), [
    "with the mesh: parked grew by 1, not by 0",
    "with the mesh: first_queries grew by 3, not by 2",
    "with the mesh: 1 of 2 replies took 1.0 s or more",
  ]);
});

Deno.test("a missing round and a time that is no number are faults", () => {
  const grown = { first_queries: 2, replies_by_wake: 2 };
  assert.equal(findFaults(makeSeries(grown, [3]), EXPECTED).length, 1);
  assert.equal(findFaults(makeSeries(grown, [3, NaN]), EXPECTED).length, 1);
});

Deno.test("a figure that a replica does not report is a fault", () => {
  const series = makeSeries({ first_queries: 2 }, [3, 4]);
  const after = { ...series.after, replies_by_wake: undefined } as unknown as WakerFigures;
  assert.equal(findFaults({ ...series, after }, EXPECTED).length, 1);
});

Deno.test("the table shows times by nearest rank and figures by their growth", () => {
  const times = Array.from({ length: 200 }, (_, i) => (i + 1) / 10);
  const series = makeSeries({ replies_by_wake: 199, replies_by_poll: 1 }, times);
  assert.deepEqual(seriesTable([series]), [
    "                rounds   by wake   by poll       p50       p99       max",
    "with the mesh      200       199         1   10.0 ms   19.8 ms   20.0 ms",
  ]);
});
