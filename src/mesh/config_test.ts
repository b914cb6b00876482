import assert from "node:assert/strict";
import {
  completeMeshConfig,
  MESH_DEFAULTS,
  meshConfigFromEnv,
  type MeshSettings,
} from "./config.ts";
import { ConfigError, type Env } from "./env.ts";
import type { Random } from "./runtime.ts";

const random: Random = (bytes) => bytes.fill(0xab);

function read(env: Env, hostName: string | undefined = "host-1") {
  const warnings: string[] = [];
  const warn = (message: string) => warnings.push(message);
  return { config: meshConfigFromEnv(env, { hostName, random, warn }), warnings };
}

Deno.test("an empty environment gives the defaults and the host name as server id", () => {
  assert.deepEqual(read({}), {
    config: { ...MESH_DEFAULTS, serverId: "host-1" },
    warnings: [],
  });
});

Deno.test("without a host name the server id is queen- and eight hex digits", () => {
  assert.equal(read({}, "").config.serverId, "queen-abababab");
  assert.equal(
    meshConfigFromEnv({}, { hostName: undefined, random, warn() {} }).serverId,
    "queen-abababab",
  );
});

Deno.test("every setting of the mesh is read", () => {
  const { config } = read({
    QUEEN_SYNC_ENABLED: "off",
    QUEEN_MESH_PEERS: "a,b:7000",
    QUEEN_MESH_PORT: "7001",
    QUEEN_SYNC_SECRET: " kept as it is ",
    QUEEN_SYNC_HEARTBEAT_MS: "250",
    QUEEN_SYNC_DEAD_THRESHOLD_MS: "1",
    QUEEN_SERVER_ID: " node-A ",
  });
  assert.deepEqual(config, {
    enabled: false,
    serverId: "node-A",
    port: 7001,
    peers: [{ host: "a", port: 7001 }, { host: "b", port: 7000 }],
    secret: " kept as it is ",
    heartbeatMs: 250,
    deadThresholdMs: 1,
  });
});

Deno.test("an older alias is read where the new name is unset or empty, and only there", () => {
  assert.equal(read({ QUEEN_UDP_NOTIFY_PORT: "7" }).config.port, 7);
  assert.equal(read({ QUEEN_UDP_NOTIFY_PORT: "7", QUEEN_MESH_PORT: "" }).config.port, 7);
  assert.equal(read({ QUEEN_UDP_NOTIFY_PORT: "7", QUEEN_MESH_PORT: "8" }).config.port, 8);
  assert.equal(read({ QUEEN_UDP_PEERS: "a" }).config.peers[0]?.host, "a");
  assert.equal(read({ QUEEN_UDP_PEERS: "a", QUEEN_MESH_PEERS: " " }).config.peers[0]?.host, "a");
  assert.equal(read({ QUEEN_UDP_PEERS: "a", QUEEN_MESH_PEERS: "b" }).config.peers[0]?.host, "b");
});

Deno.test("a peer that is not understood in full is warned of", () => {
  assert.equal(read({ QUEEN_MESH_PEERS: "a:x" }).warnings.length, 1);
});

for (const text of ["true", "1", "YES", "On"]) {
  Deno.test(`QUEEN_SYNC_ENABLED=${text} switches the mesh on`, () => {
    assert.equal(read({ QUEEN_SYNC_ENABLED: text }).config.enabled, true);
  });
}

for (const text of ["false", "0", "NO", "Off"]) {
  Deno.test(`QUEEN_SYNC_ENABLED=${text} switches the mesh off`, () => {
    assert.equal(read({ QUEEN_SYNC_ENABLED: text }).config.enabled, false);
  });
}

const unusable: [name: string, value: string][] = [
  ["QUEEN_SYNC_ENABLED", "maybe"],
  ["QUEEN_MESH_PORT", "0"],
  ["QUEEN_MESH_PORT", "65536"],
  ["QUEEN_MESH_PORT", "66e2"],
  ["QUEEN_UDP_NOTIFY_PORT", "x"],
  ["QUEEN_SYNC_HEARTBEAT_MS", "0"],
  ["QUEEN_SYNC_HEARTBEAT_MS", "-1"],
  ["QUEEN_SYNC_HEARTBEAT_MS", "2147483648"],
  ["QUEEN_SYNC_DEAD_THRESHOLD_MS", "1.5"],
];

for (const [name, value] of unusable) {
  Deno.test(`${name}=${value} is refused in one line that names both`, () => {
    assert.throws(() => read({ [name]: value }), (error) => {
      assert(error instanceof ConfigError);
      assert(error.message.startsWith(name) && error.message.includes(JSON.stringify(value)));
      assert(!error.message.includes("\n"));
      return true;
    });
  });
}

Deno.test("settings that are left out have their defaults", () => {
  assert.deepEqual(completeMeshConfig({ serverId: "a", port: 0 }), {
    ...MESH_DEFAULTS,
    serverId: "a",
    port: 0,
  });
});

const outOfBounds: [field: string, settings: Omit<MeshSettings, "serverId">][] = [
  ["port", { port: 65_536 }],
  ["port", { port: -1 }],
  ["the port of b", { peers: [{ host: "b", port: 0 }] }],
  ["heartbeatMs", { heartbeatMs: 0 }],
  ["heartbeatMs", { heartbeatMs: 1.5 }],
  ["deadThresholdMs", { deadThresholdMs: NaN }],
  ["deadThresholdMs", { deadThresholdMs: 2 ** 31 }],
];

for (const [field, settings] of outOfBounds) {
  Deno.test(`a configuration with ${JSON.stringify(settings)} is out of bounds`, () => {
    assert.throws(
      () => completeMeshConfig({ serverId: "a", ...settings }),
      (error) => error instanceof RangeError && error.message.startsWith(field),
    );
  });
}

Deno.test("a secret that is missing by mistake does not open the mesh", () => {
  const settings = { serverId: "a", secret: undefined } as unknown as MeshSettings;
  assert.throws(() => completeMeshConfig(settings), {
    name: "TypeError",
    message: "secret must be a string, got undefined",
  });
});

Deno.test("settings of the wrong type are refused", () => {
  for (
    const wrong of [
      { serverId: 7 },
      { serverId: "" },
      { enabled: "false" },
      { hostname: "" },
      { peers: "a,b" },
      { peers: [{ port: 1 }] },
      { peers: [{ host: "", port: 1 }] },
    ]
  ) {
    const settings = { serverId: "a", ...wrong } as unknown as MeshSettings;
    assert.throws(() => completeMeshConfig(settings), TypeError, JSON.stringify(wrong));
  }
});

Deno.test("who is told of a warning is told of nothing else", () => {
  const told: unknown[][] = [];
  const warn = (...all: unknown[]) => void told.push(all);
  meshConfigFromEnv({ QUEEN_MESH_PEERS: "a:x,b:y" }, { hostName: "h", warn });
  assert.deepEqual(told.map((all) => all.length), [1, 1]);
});
