import { type MeshConfig, meshConfigFromEnv, type MeshConfigSources } from "../mesh/config.ts";
import { ConfigError, type Env, readBoolean, readInteger } from "../mesh/env.ts";
import { popWaitFromEnv, type PopWaitSettings } from "./backoff.ts";

/** How one replica is set up, its store aside. */
export interface ReplicaConfig {
  /** The port of the HTTP API; 0 lets the system choose. */
  readonly port: number;
  /** The address to serve on; every address of both families where it is left out. */
  readonly hostname?: string;
  /** The greatest request body, in bytes. */
  readonly maxBodyBytes: number;
  /** How often parked pops poll. */
  readonly popWait: PopWaitSettings;
  /** Its node of the mesh. */
  readonly mesh: MeshConfig;
}

/** The default port of the HTTP API. */
export const HTTP_PORT = 6632;

/** The default greatest request body: 64 MiB. */
export const BODY_BYTES_MAX = 64 * 1024 * 1024;

/** A body is held as one text, and texts have a longest one. */
const BODY_BYTES_LIMIT = 256 * 1024 * 1024;

/**
 * Reads a replica's part of the environment, that of its mesh included (protocol, section 9).
 *
 * @throws {ConfigError} where a setting cannot be used; its message is one line.
 */
export function replicaConfigFromEnv(env: Env, sources: MeshConfigSources): ReplicaConfig {
  if (readBoolean(env, "QUEEN_TENANCY_HEADER", false)) {
    throw new ConfigError(
      "QUEEN_TENANCY_HEADER must be false: this version serves the default tenant alone",
    );
  }
  return {
    port: readInteger(env, "PORT", { fallback: HTTP_PORT, min: 0, max: 65_535 }),
    maxBodyBytes: readInteger(env, "QUEEN_MAX_BODY_BYTES", {
      fallback: BODY_BYTES_MAX,
      min: 1,
      max: BODY_BYTES_LIMIT,
    }),
    popWait: popWaitFromEnv(env),
    mesh: meshConfigFromEnv(env, sources),
  };
}
