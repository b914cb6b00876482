import assert from "node:assert/strict";
import { ConfigError } from "../mesh/env.ts";
import { POP_WAIT_DEFAULTS, PopBackoff, popWaitFromEnv } from "./backoff.ts";

function delays(backoff: PopBackoff, count: number): number[] {
  return Array.from({ length: count }, () => {
    const { delayMs } = backoff;
    backoff.countEmpty();
    return delayMs;
  });
}

Deno.test("empty polls up to the threshold wait the initial interval and later ones longer", () => {
  const backoff = new PopBackoff({ initialMs: 100, threshold: 3, multiplier: 1.5, maxMs: 1000 });
  assert.deepEqual(delays(backoff, 8), [100, 100, 100, 600, 750, 900, 1000, 1000]);
});

Deno.test("without a threshold the first wait is multiplied already", () => {
  const backoff = new PopBackoff({ initialMs: 100, threshold: 0, multiplier: 2, maxMs: 1000 });
  assert.deepEqual(delays(backoff, 3), [200, 400, 600]);
});

Deno.test("a reset starts the backoff over", () => {
  const backoff = new PopBackoff(POP_WAIT_DEFAULTS);
  delays(backoff, 6);
  assert.equal(backoff.delayMs, 1000);
  backoff.reset();
  assert.equal(backoff.delayMs, 100);
});

Deno.test("no wait is longer than the longest, the initial one included", () => {
  const backoff = new PopBackoff({ initialMs: 5000, threshold: 3, multiplier: 2, maxMs: 1000 });
  assert.equal(backoff.delayMs, 1000);
});

Deno.test("the pop wait settings have the documented defaults", () => {
  assert.deepEqual(popWaitFromEnv({}), {
    initialMs: 100,
    threshold: 3,
    multiplier: 2,
    maxMs: 1000,
  });
});

Deno.test("the pop wait settings are read from the environment", () => {
  const settings = popWaitFromEnv({
    POP_WAIT_INITIAL_INTERVAL_MS: "10",
    POP_WAIT_BACKOFF_THRESHOLD: "0",
    POP_WAIT_BACKOFF_MULTIPLIER: " 1.5 ",
    POP_WAIT_MAX_INTERVAL_MS: "5000",
  });
  assert.deepEqual(settings, { initialMs: 10, threshold: 0, multiplier: 1.5, maxMs: 5000 });
});

for (
  const [name, value] of [
    ["POP_WAIT_INITIAL_INTERVAL_MS", "0"],
    ["POP_WAIT_INITIAL_INTERVAL_MS", "soon"],
    ["POP_WAIT_BACKOFF_THRESHOLD", "-1"],
    ["POP_WAIT_BACKOFF_MULTIPLIER", "0.5"],
    ["POP_WAIT_BACKOFF_MULTIPLIER", "two"],
    ["POP_WAIT_BACKOFF_MULTIPLIER", "Infinity"],
    ["POP_WAIT_MAX_INTERVAL_MS", "0"],
  ] as const
) {
  Deno.test(`${name}=${value} is an error of one line that names it`, () => {
    assert.throws(() => popWaitFromEnv({ [name]: value }), (error) => {
      assert(error instanceof ConfigError);
      assert(error.message.startsWith(`${name} must be `), error.message);
      assert(error.message.endsWith(`not "${value}"`), error.message);
      assert(!error.message.includes("\n"));
      return true;
    });
  });
}
