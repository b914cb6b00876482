import assert from "node:assert/strict";
import { replaySeed, runSeeds } from "./campaign.ts";
import { FAULTS } from "./faults.ts";

const FAULT = FAULTS.find(({ name }) => name === "a redial does not wait")!;

function collect() {
  const lines: string[] = [];
  let time = 0;
  // Every look at the time finds 400 ms gone.
  return {
    lines,
    options: { print: (line: string) => void lines.push(line), now: () => time += 400 },
  };
}

Deno.test("a campaign tells its progress each second and at its end", async () => {
  const { lines, options } = collect();
  const seeds: number[] = [];
  const onSeed = (seed: number) => void seeds.push(seed);
  assert.equal(await runSeeds({ ...options, from: 7, count: 5, onSeed }), true);
  assert.deepEqual(seeds, [7, 8, 9, 10, 11]);
  assert.deepEqual(lines, ["3 of 5 seeds, 3 seeds/s", "5 of 5 seeds, 3 seeds/s"]);
});

Deno.test("a campaign stops at the first seed that goes wrong, and prints its trace", async () => {
  const { lines, options } = collect();
  const { plant } = FAULT;
  assert.equal(await runSeeds({ ...options, from: 0, count: 1000, plant }), false);
  const [verdict, hint] = lines.slice(-2);
  const [, seed] = /^seed (\d+) breaks the rule "redial": .*redialled after 0 ms/.exec(verdict!) ??
    [];
  assert.ok(seed !== undefined, verdict);
  assert.equal(hint, `replay it by: deno task simulate --seed ${seed}`);
  const trace = lines.filter((line) => /^\d+\.\d{3} /.test(line));
  assert.match(trace[0]!, /^0\.000 profile \{/);
  assert.match(trace.at(-1)!, /VIOLATION redial/);
});

Deno.test("a seed without a fault replays without a complaint", async () => {
  const { lines, options } = collect();
  assert.equal(await replaySeed(3, options), true);
  assert.equal(lines.at(-1), "seed 3: nothing went wrong");
  assert.ok(lines.length > 50);
});
