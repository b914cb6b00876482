import assert from "node:assert/strict";
import { ConfigError } from "../../mesh/env.ts";
import { HOT_LIST_DEFAULTS, hotListFromEnv } from "./config.ts";

Deno.test("without settings the hot list has its defaults", () => {
  assert.deepEqual(hotListFromEnv({}), { enabled: true, reseedMs: 30_000, idleSweepMs: 300_000 });
  assert.deepEqual(hotListFromEnv({ QUEEN_HOTLIST: "" }), HOT_LIST_DEFAULTS);
});

Deno.test("the hot list's settings are read from the environment", () => {
  const settings = hotListFromEnv({
    QUEEN_HOTLIST: "off",
    QUEEN_HOTLIST_RESEED_MS: "3600000",
    QUEEN_HOTLIST_IDLE_SWEEP_MS: "1",
  });
  assert.deepEqual(settings, { enabled: false, reseedMs: 3_600_000, idleSweepMs: 1 });
});

Deno.test("a setting of the hot list that cannot be used is refused by its name", () => {
  for (
    const [name, value] of [
      ["QUEEN_HOTLIST", "maybe"],
      ["QUEEN_HOTLIST_RESEED_MS", "0"],
      ["QUEEN_HOTLIST_IDLE_SWEEP_MS", "-1"],
    ] as const
  ) {
    assert.throws(() => hotListFromEnv({ [name]: value }), (error) => {
      assert(error instanceof ConfigError);
      assert(error.message.startsWith(name), error.message);
      return true;
    });
  }
});
