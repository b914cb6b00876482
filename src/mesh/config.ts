import { type Env, readBoolean, readInteger, readText } from "./env.ts";
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

/** What {@linkcode meshConfigFromEnv} needs beside the environment. */
export interface MeshConfigSources {
  /** The machine's host name, the default server id; undefined or empty where it is unknown. */
  readonly hostName: string | undefined;
  /** For a server id where there is no host name. */
  readonly random: Random;
  /** Told of each setting that was not understood in full, in one line. */
  readonly warn: (message: string) => void;
}

/**
 * Reads the mesh's part of the environment: `QUEEN_SYNC_*`, `QUEEN_MESH_*` with their older aliases,
 * and `QUEEN_SERVER_ID`.
 *
 * @throws {ConfigError} where a setting cannot be used.
 */
export function meshConfigFromEnv(env: Env, sources: MeshConfigSources): MeshConfig {
  const portName = readText(env, "QUEEN_MESH_PORT") === undefined
    ? "QUEEN_UDP_NOTIFY_PORT"
    : "QUEEN_MESH_PORT";
  const port = readInteger(env, portName, { fallback: MESH_PORT, min: 1, max: 65_535 });
  const list = readText(env, "QUEEN_MESH_PEERS") ?? readText(env, "QUEEN_UDP_PEERS") ?? "";
  const { peers, warnings } = parsePeers(list, port);
  warnings.forEach(sources.warn);
  return {
    enabled: readBoolean(env, "QUEEN_SYNC_ENABLED", MESH_DEFAULTS.enabled),
    serverId: readText(env, "QUEEN_SERVER_ID") ?? defaultServerId(sources),
    port,
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

function defaultServerId({ hostName, random }: MeshConfigSources): string {
  const name = hostName?.trim();
  if (name) return name;
  const hex = [...random(new Uint8Array(4))].map((byte) => byte.toString(16).padStart(2, "0"));
  return `queen-${hex.join("")}`;
}
