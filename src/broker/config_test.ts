import assert from "node:assert/strict";
import { ConfigError } from "../mesh/env.ts";
import { Prng } from "../simulation/prng.ts";
import { replicaConfigFromEnv } from "./config.ts";

const sources = { hostName: "host", random: new Prng(1).random, warn: () => {} };

Deno.test("a replica has the documented defaults", () => {
  const config = replicaConfigFromEnv({}, sources);
  assert.equal(config.port, 6632);
  assert.equal(config.maxBodyBytes, 67_108_864);
  assert.equal(config.popWait.maxMs, 1000);
  assert.equal(config.mesh.port, 6633);
  assert.equal(config.mesh.serverId, "host");
  assert.equal(config.hostname, undefined);
  assert.equal(config.mesh.hostname, undefined);
  assert.equal(config.tenancy, false);
  assert.equal(config.cacheRefreshMs, 60_000);
  assert.equal(config.defaultSubscriptionMode, "new");
  assert.deepEqual(config.spool, { directory: "queen-spool/host", bytesMax: 1_073_741_824 });
  assert.equal(config.encryptionKeyHex, undefined);
  assert.deepEqual(config.hotList, { enabled: true, reseedMs: 30_000, idleSweepMs: 300_000 });
});

Deno.test("a replica is set up by the environment", () => {
  const config = replicaConfigFromEnv({
    PORT: "8080",
    QUEEN_MAX_BODY_BYTES: "1000",
    POP_WAIT_MAX_INTERVAL_MS: "5000",
    QUEEN_SERVER_ID: "a",
    HOST: "[::1]",
    QUEEN_MESH_HOST: "127.0.0.1",
    QUEEN_TENANCY_HEADER: "true",
    QUEEN_HOTLIST: "off",
    QUEEN_CACHE_REFRESH_INTERVAL_MS: "5000",
    DEFAULT_SUBSCRIPTION_MODE: "all",
    FILE_BUFFER_DIR: "/data/spool",
    FILE_BUFFER_MAX_BYTES: "1000000",
    QUEEN_ENCRYPTION_KEY: "0123456789ABCDEF".repeat(4),
  }, sources);
  assert.equal(config.hostname, "::1");
  assert.equal(config.mesh.hostname, "127.0.0.1");
  assert.equal(config.tenancy, true);
  assert.equal(config.hotList?.enabled, false);
  assert.equal(config.cacheRefreshMs, 5000);
  assert.equal(config.defaultSubscriptionMode, "all");
  assert.deepEqual(config.spool, { directory: "/data/spool", bytesMax: 1_000_000 });
  assert.equal(config.encryptionKeyHex, "0123456789ABCDEF".repeat(4));
  assert.equal(config.port, 8080);
  assert.equal(config.maxBodyBytes, 1000);
  assert.equal(config.popWait.maxMs, 5000);
  assert.equal(config.mesh.serverId, "a");
});

for (
  const [name, value] of [
    ["PORT", "http"],
    ["PORT", "65536"],
    ["QUEEN_MAX_BODY_BYTES", "0"],
    ["QUEEN_TENANCY_HEADER", "maybe"],
    ["QUEEN_CACHE_REFRESH_INTERVAL_MS", "0"],
    ["FILE_BUFFER_MAX_BYTES", "1G"],
    ["DEFAULT_SUBSCRIPTION_MODE", "latest"],
    ["QUEEN_ENCRYPTION_KEY", "0123"],
    ["QUEEN_ENCRYPTION_KEY", "g".repeat(64)],
  ] as const
) {
  Deno.test(`${name}=${value} stops the start by one line that names it`, () => {
    assert.throws(() => replicaConfigFromEnv({ [name]: value }, sources), (error) => {
      assert(error instanceof ConfigError);
      assert.match(error.message, new RegExp(`^${name} must be .+$`));
      return true;
    });
  });
}
