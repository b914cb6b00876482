import { type Env, readBoolean, readInteger } from "../../mesh/env.ts";

/** How the hot list is set up. */
export interface HotListSettings {
  /** Off: no ring is made, no mark is kept, no hint is sent. */
  readonly enabled: boolean;
  /** How often a ring is seeded anew from PostgreSQL, in milliseconds, at least 1; less jitter. */
  readonly reseedMs: number;
  /** A ring that nobody polled for so long is dropped, in milliseconds, at least 1. */
  readonly idleSweepMs: number;
}

/** The settings where the environment says nothing. */
export const HOT_LIST_DEFAULTS: HotListSettings = {
  enabled: true,
  reseedMs: 30_000,
  idleSweepMs: 300_000,
};

/**
 * Reads the `QUEEN_HOTLIST*` settings.
 *
 * @throws {ConfigError} Where one cannot be used.
 */
export function hotListFromEnv(env: Env): HotListSettings {
  return {
    enabled: readBoolean(env, "QUEEN_HOTLIST", HOT_LIST_DEFAULTS.enabled),
    reseedMs: readInteger(env, "QUEEN_HOTLIST_RESEED_MS", {
      fallback: HOT_LIST_DEFAULTS.reseedMs,
      min: 1,
    }),
    idleSweepMs: readInteger(env, "QUEEN_HOTLIST_IDLE_SWEEP_MS", {
      fallback: HOT_LIST_DEFAULTS.idleSweepMs,
      min: 1,
    }),
  };
}
