import { type MeshConfig, meshConfigFromEnv, type MeshConfigSources } from "../mesh/config.ts";
import {
  ConfigError,
  type Env,
  readBoolean,
  readHost,
  readInteger,
  readText,
} from "../mesh/env.ts";
import { popWaitFromEnv, type PopWaitSettings } from "./backoff.ts";
import { cacheRefreshFromEnv } from "./reconcile.ts";
import { retentionIntervalFromEnv } from "./retention_sweeper.ts";
import { type SpoolConfig, spoolConfigFromEnv } from "./spool/spool_config.ts";
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
  /** How often it reconciles, in milliseconds; once a minute where it is left out. */
  readonly cacheRefreshMs?: number;
  /** From where a group starts whose first pop does not say it; `new` where it is left out. */
  readonly defaultSubscriptionMode?: "new" | "all";
  /** How often it removes messages whose retention is over, in ms; once a minute if left out. */
  readonly retentionIntervalMs?: number;
  /** Its node of the mesh. */
  readonly mesh: MeshConfig;
}

/** The default port of the HTTP API. */
export const HTTP_PORT = 6632;

/** The default greatest request body: 64 MiB. */
export const BODY_BYTES_MAX = 64 * 1024 * 1024;

/** A body is held as one text, and texts have a longest one. */
const BODY_BYTES_LIMIT = 256 * 1024 * 1024;

/** A {@linkcode ReplicaConfig} that the environment says in full. */
export interface ReplicaEnvConfig extends ReplicaConfig {
  /** Where the spool lies and how large it may grow. */
  readonly spool: SpoolConfig;
  /** The key of what is encrypted: 64 hex digits; undefined where there is none. */
  readonly encryptionKeyHex: string | undefined;
}

/**
 * Reads a replica's part of the environment, that of its mesh included (protocol, section 9).
 *
 * @throws {ConfigError} where a setting cannot be used; its message is one line.
 */
export function replicaConfigFromEnv(env: Env, sources: MeshConfigSources): ReplicaEnvConfig {
  const hostname = readHost(env, "HOST");
  const mesh = meshConfigFromEnv(env, sources);
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
    cacheRefreshMs: cacheRefreshFromEnv(env),
    defaultSubscriptionMode: subscriptionModeFromEnv(env),
    retentionIntervalMs: retentionIntervalFromEnv(env),
    mesh,
    spool: spoolConfigFromEnv(env, mesh.serverId),
    encryptionKeyHex: encryptionKeyFromEnv(env),
  };
}

function subscriptionModeFromEnv(env: Env): "new" | "all" {
  const text = readText(env, "DEFAULT_SUBSCRIPTION_MODE") ?? "new";
  if (text === "new" || text === "all") return text;
  throw new ConfigError(`DEFAULT_SUBSCRIPTION_MODE must be new or all, got "${text}"`);
}

function encryptionKeyFromEnv(env: Env): string | undefined {
  const text = readText(env, "QUEEN_ENCRYPTION_KEY");
  if (text === undefined || /^[0-9a-f]{64}$/i.test(text)) return text;
  // It may be a key with a slip in it, so it is not shown.
  throw new ConfigError(
    `QUEEN_ENCRYPTION_KEY must be 64 hex digits, and has ${text.length} characters`,
  );
}
