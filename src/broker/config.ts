import { type MeshConfig, meshConfigFromEnv, type MeshConfigSources } from "../mesh/config.ts";
import { type Env, readBoolean, readHost, readInteger } from "../mesh/env.ts";
import { popWaitFromEnv, type PopWaitSettings } from "./backoff.ts";
import { hotListFromEnv, type HotListSettings } from "./hot_list/config.ts";

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
  /** Whether requests name their tenant; they all work within the default one where it is left out. */
  readonly tenancy?: boolean;
  /** The hot list; on, with the defaults, where it is left out. */
  readonly hotList?: HotListSettings;
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
  const hostname = readHost(env, "HOST");
  return {
    port: readInteger(env, "PORT", { fallback: HTTP_PORT, min: 0, max: 65_535 }),
    ...(hostname === undefined ? {} : { hostname }),
    maxBodyBytes: readInteger(env, "QUEEN_MAX_BODY_BYTES", {
      fallback: BODY_BYTES_MAX,
      min: 1,
      max: BODY_BYTES_LIMIT,
    }),
    popWait: popWaitFromEnv(env),
    tenancy: readBoolean(env, "QUEEN_TENANCY_HEADER", false),
    hotList: hotListFromEnv(env),
    mesh: meshConfigFromEnv(env, sources),
  };
}
