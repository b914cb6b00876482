import assert from "node:assert/strict";
import { FAULTS } from "./faults.ts";
import type { Clock } from "../mesh/runtime.ts";
import type { Plant } from "./simulated_node.ts";
import { type Outcome, simulate } from "./simulation.ts";
import type { Rule } from "./violation.ts";

/** Within so many seeds a planted fault has to come to light. */
const SEEDS_MAX = 1000;

/** The first run whose violation is of one of `rules`. */
async function firstFound(
  plant: Plant,
  rules: readonly Rule[],
): Promise<Outcome | undefined> {
  for (let seed = 0; seed < SEEDS_MAX; seed++) {
    const outcome = await simulate(seed, { plant });
    if (outcome.violation !== null && rules.includes(outcome.violation.rule)) return outcome;
  }
  return undefined;
}

Deno.test("nothing goes wrong in the meshes of 500 seeds", async () => {
  for (let seed = 0; seed < 500; seed++) {
    const { violation } = await simulate(seed);
    assert.equal(violation, null, `seed ${seed}: ${violation?.rule}: ${violation?.text}`);
  }
});

for (const { name, rules, plant } of FAULTS) {
  Deno.test(`a planted fault is found, and its trace replays: ${name}`, async () => {
    const found = await firstFound(plant, rules);
    assert.ok(found, `not found within ${SEEDS_MAX} seeds`);
    const { seed, violation, elapsedMs } = found;
    const first = await simulate(seed, { plant, isTraced: true });
    const second = await simulate(seed, { plant, isTraced: true });
    assert.deepEqual(first.violation, violation);
    assert.equal(first.elapsedMs, elapsedMs);
    assert.deepEqual(second.trace, first.trace);
    assert.ok(first.trace.some((line) => line.includes(`VIOLATION ${violation?.rule}`)));
    assert.equal((await simulate(seed)).violation, null, "found without the fault as well");
  });
}

Deno.test("an error that comes out of a timer is reported like anything else that goes wrong", async () => {
  const plant: Plant = (setup) => {
    const { clock } = setup.options.runtime;
    const failing: Clock = {
      now: () => clock.now(),
      setTimer: (ms) =>
        clock.setTimer(ms, () => {
          throw new Error("from a timer");
        }),
    };
    const runtime = { ...setup.options.runtime, clock: failing };
    return { ...setup, options: { ...setup.options, runtime } };
  };
  const { violation } = await simulate(0, { plant });
  assert.equal(violation?.rule, "crash");
  assert.match(violation.text, /from a timer/);
});

Deno.test("a run is the same whether it is traced or not, and differs from seed to seed", async () => {
  const plain = await simulate(1);
  const traced = await simulate(1, { isTraced: true });
  assert.deepEqual({ ...traced, trace: [] }, plain);
  assert.ok(traced.trace.length > 100);
  assert.notDeepEqual((await simulate(2, { isTraced: true })).trace, traced.trace);
});

Deno.test("runs between them make everything happen that can happen", async () => {
  const done = new Set<string>();
  for (let seed = 0; seed < 60; seed++) {
    for (const line of (await simulate(seed, { isTraced: true })).trace) {
      const [, what] = / \* (.*)$/.exec(line) ?? [];
      // Names and numbers apart, each kind of action reads alike.
      if (what !== undefined) {
        done.add(what.replace(/\b[abc]\b|\d+|#\S*/g, "").replace(/\s+/g, " "));
      }
    }
  }
  const all = [...done].join("\n");
  for (
    const what of [
      "broadcasts message_available",
      "broadcasts hotlist_dirty",
      "broadcasts queue_config_set",
      "broadcasts queue_config_delete",
      "broadcasts maintenance_mode",
      "broadcasts pop_maintenance_mode",
      "messages in one turn",
      "long messages in one turn",
      "is lost: reset",
      "is lost: end",
      "with what is on its way",
      "cut between",
      "cut from",
      "heal between",
      "time out",
      "takes to ms",
      "stops reading",
      "reads on",
      "is killed: reset",
      "is killed: end",
      "is killed: vanish",
      "is closed",
      "starts with wrong secret",
      "cannot bind its port",
      "fails to accept",
      "resolves to hanging",
      "resolves to failing",
      "attack on : stranger",
      "attack on : bad hello",
      "attack on : replay",
      "attack on : garbage",
      "attack on : torn",
      "attack on : slow",
      "attack on : breaker",
      "attack on : guest",
      "attack on : flood",
    ]
  ) assert.ok(all.includes(what), `never happened: ${what}`);
});
