import assert from "node:assert/strict";
import { ConfigError } from "../../mesh/env.ts";
import { spoolConfigFromEnv } from "./spool_config.ts";

Deno.test("without settings a spool lies beside those of other replicas, and may hold 1 GiB", () => {
  assert.deepEqual(spoolConfigFromEnv({}, "queen-1"), {
    directory: "queen-spool/queen-1",
    bytesMax: 1_073_741_824,
  });
});

Deno.test("the settings say where a spool lies and how large it may grow", () => {
  const env = { FILE_BUFFER_DIR: "/var/spool", FILE_BUFFER_MAX_BYTES: "5000000000" };
  assert.deepEqual(spoolConfigFromEnv(env, "queen-1"), {
    directory: "/var/spool",
    bytesMax: 5_000_000_000,
  });
});

Deno.test("a server id cannot lead to another directory", () => {
  for (const [serverId, name] of [["..", "%2E%2E"], [".", "%2E"], ["a/../b", "a%2F..%2Fb"]]) {
    assert.equal(spoolConfigFromEnv({}, serverId!).directory, `queen-spool/${name}`);
  }
});

Deno.test("a limit that is no number is refused", () => {
  for (const value of ["1GiB", "-1", "0"]) {
    assert.throws(() => spoolConfigFromEnv({ FILE_BUFFER_MAX_BYTES: value }, "a"), ConfigError);
  }
});
