import { checkNonEmpty, checkString, show } from "../protocol/check.ts";
import { type Env, readBoolean, readHost, readInteger, readText, TIMER_MS_MAX } from "./env.ts";
import { parsePeers, type PeerAddress } from "./peers.ts";
import type { Random } from "./runtime.ts";

/** How one node of the mesh is set up (protocol, section 9). */
export interface MeshConfig {
  /** Off: nothing is bound and nothing is sent (TOP-7). */
  readonly enabled: boolean;
  /** How this node calls itself; not empty, and its own among all nodes. */
  readonly serverId: string;
  /** The mesh port to listen on; 0 lets the system choose. */
  readonly port: number;
  /** The address to listen on; every address where it is left out. */
  readonly hostname?: string;
  /** Where to dial. Without peers the mesh is off (TOP-7). */
  readonly peers: readonly PeerAddress[];
  /** The shared secret; empty is open mode (HSK-6). */
  readonly secret: string;
  /** A HEARTBEAT goes out on each dialled connection this often, in milliseconds, at least 1 (SND-5). */
  readonly heartbeatMs: number;
  /** A server that was silent for longer than this is dead, in milliseconds, at least 1 (LIV-2). */
  readonly deadThresholdMs: number;
}

/** The default mesh port. */
export const MESH_PORT = 6633;

/** The defaults of everything but the server id. */
export const MESH_DEFAULTS: Omit<MeshConfig, "serverId"> = {
  enabled: true,
  port: MESH_PORT,
  peers: [],
  secret: "",
  heartbeatMs: 1000,
  deadThresholdMs: 5000,
};

/** A {@linkcode MeshConfig} in which everything but the server id may be left to the defaults. */
export type MeshSettings = Partial<MeshConfig> & Pick<MeshConfig, "serverId">;

/**
 * Fills settings up with {@linkcode MESH_DEFAULTS}.
 *
 * @throws {TypeError} Where a field has the wrong type, or the server id or a host is empty. A field
 * that is there and undefined counts as wrong: a secret that is missing by mistake must not open the
 * mesh.
 * @throws {RangeError} Where a number is out of its bounds.
 */
export function completeMeshConfig(settings: MeshSettings): MeshConfig {
  const config = { ...MESH_DEFAULTS, ...settings };
  const { enabled, serverId, port, hostname, peers, secret } = config;
  const { heartbeatMs, deadThresholdMs } = config;
  if (typeof enabled !== "boolean") {
    throw new TypeError(`enabled must be a boolean, got ${show(enabled)}`);
  }
  checkNonEmpty("serverId", serverId);
  checkInteger("port", port, { min: 0, max: 65_535 });
  if (hostname !== undefined) checkNonEmpty("hostname", hostname);
  if (!Array.isArray(peers)) throw new TypeError(`peers must be an array, got ${show(peers)}`);
  for (const peer of peers as readonly PeerAddress[]) {
    checkNonEmpty("the host of a peer", peer.host);
    checkInteger(`the port of ${peer.host}`, peer.port, { min: 1, max: 65_535 });
  }
  checkString("secret", secret);
  checkInteger("heartbeatMs", heartbeatMs, { min: 1, max: TIMER_MS_MAX });
  checkInteger("deadThresholdMs", deadThresholdMs, { min: 1, max: TIMER_MS_MAX });
  return config;
}

function checkInteger(name: string, value: number, { min, max }: { min: number; max: number }) {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(
      `${name} must be a whole number from ${min} to ${max}, got ${show(value)}`,
    );
  }
}

/** What {@linkcode meshConfigFromEnv} takes from elsewhere than the environment. */
export interface MeshConfigSources {
  /** The machine's host name, the default server id; unknown where it is left out or empty. */
  readonly hostName?: string | undefined;
  /** For a server id where there is no host name; by Web Crypto where it is left out. */
  readonly random?: Random;
  /** Told of each setting that was not understood in full, in one line; else the console is. */
  readonly warn?: (message: string) => void;
}

/**
 * Reads the mesh's part of the environment: `QUEEN_SYNC_*`, `QUEEN_MESH_*` with their older aliases,
 * and `QUEEN_SERVER_ID` (protocol, section 9).
 *
 * @throws {ConfigError} Where a setting cannot be used.
 *
 * @example
 * ```ts
 * import { meshConfigFromEnv } from "@queen/mesh";
 * import assert from "node:assert/strict";
 *
 * const config = meshConfigFromEnv({ QUEEN_SERVER_ID: "a", QUEEN_MESH_PEERS: "b,c:7000" });
 * assert.deepEqual(config.peers, [{ host: "b", port: 6633 }, { host: "c", port: 7000 }]);
 * ```
 */
export function meshConfigFromEnv(env: Env, sources: MeshConfigSources = {}): MeshConfig {
  const portName = readText(env, "QUEEN_MESH_PORT") === undefined
    ? "QUEEN_UDP_NOTIFY_PORT"
    : "QUEEN_MESH_PORT";
  const port = readInteger(env, portName, { fallback: MESH_PORT, min: 1, max: 65_535 });
  const hostname = readHost(env, "QUEEN_MESH_HOST");
  const list = readText(env, "QUEEN_MESH_PEERS") ?? readText(env, "QUEEN_UDP_PEERS") ?? "";
  const { peers, warnings } = parsePeers(list, port);
  const { warn = (message: string) => console.warn(message) } = sources;
  for (const warning of warnings) warn(warning);
  return {
    enabled: readBoolean(env, "QUEEN_SYNC_ENABLED", MESH_DEFAULTS.enabled),
    serverId: readText(env, "QUEEN_SERVER_ID") ?? defaultServerId(sources),
    port,
    ...(hostname === undefined ? {} : { hostname }),
    peers,
    // Taken as it is: white space may be part of a secret.
    secret: env["QUEEN_SYNC_SECRET"] ?? MESH_DEFAULTS.secret,
    heartbeatMs: readInteger(env, "QUEEN_SYNC_HEARTBEAT_MS", {
      fallback: MESH_DEFAULTS.heartbeatMs,
      min: 1,
    }),
    deadThresholdMs: readInteger(env, "QUEEN_SYNC_DEAD_THRESHOLD_MS", {
      fallback: MESH_DEFAULTS.deadThresholdMs,
      min: 1,
    }),
  };
}

function defaultServerId(sources: MeshConfigSources): string {
  const { hostName, random = (bytes) => crypto.getRandomValues(bytes) } = sources;
  const name = hostName?.trim();
  if (name) return name;
  const hex = [...random(new Uint8Array(4))].map((byte) => byte.toString(16).padStart(2, "0"));
  return `queen-${hex.join("")}`;
}
