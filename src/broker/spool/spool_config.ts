import { join } from "node:path";
import { type Env, readInteger, readText } from "../../mesh/env.ts";
import { SPOOL_BYTES_MAX } from "./spool_options.ts";

/** Where a replica's spool lies and how large it may grow. */
export interface SpoolConfig {
  /** Its directory, `FILE_BUFFER_DIR`; `queen-spool/<server id>` where that is not set. */
  readonly directory: string;
  /** `FILE_BUFFER_MAX_BYTES`, 1 GiB where that is not set. */
  readonly bytesMax: number;
}

/**
 * Reads the `FILE_BUFFER_*` settings.
 *
 * @param env The environment.
 * @param serverId The replica's id, any text that is not empty.
 * @throws {ConfigError} where one cannot be used.
 */
export function spoolConfigFromEnv(env: Env, serverId: string): SpoolConfig {
  return {
    directory: readText(env, "FILE_BUFFER_DIR") ?? join("queen-spool", fileName(serverId)),
    bytesMax: readInteger(env, "FILE_BUFFER_MAX_BYTES", {
      fallback: SPOOL_BYTES_MAX,
      min: 1,
      max: Number.MAX_SAFE_INTEGER,
    }),
  };
}

/** A server id as the name of a file: what could lead elsewhere is written as `%2F` or the like. */
function fileName(serverId: string): string {
  return encodeURIComponent(serverId).replace(/^\.+$/, (dots) => "%2E".repeat(dots.length));
}
