import { ConfigError, type Env, readInteger, readText } from "../mesh/env.ts";

/** How often parked pops ask PostgreSQL on their own (protocol, section 9). */
export interface PopWaitSettings {
  /** The wait before each of the first polls, in milliseconds, at least 1. */
  readonly initialMs: number;
  /** This many empty polls wait the initial interval; later ones wait longer. */
  readonly threshold: number;
  /** By how much they wait longer, at least 1. */
  readonly multiplier: number;
  /** The longest wait, in milliseconds, at least 1 (WAK-2). */
  readonly maxMs: number;
}

/** The settings where the environment says nothing. */
export const POP_WAIT_DEFAULTS: PopWaitSettings = {
  initialMs: 100,
  threshold: 3,
  multiplier: 2,
  maxMs: 1000,
};

/**
 * Reads the `POP_WAIT_*` settings.
 *
 * @throws {ConfigError} where one cannot be used.
 */
export function popWaitFromEnv(env: Env): PopWaitSettings {
  return {
    initialMs: readInteger(env, "POP_WAIT_INITIAL_INTERVAL_MS", {
      fallback: POP_WAIT_DEFAULTS.initialMs,
      min: 1,
    }),
    threshold: readInteger(env, "POP_WAIT_BACKOFF_THRESHOLD", {
      fallback: POP_WAIT_DEFAULTS.threshold,
      min: 0,
    }),
    multiplier: readMultiplier(env, "POP_WAIT_BACKOFF_MULTIPLIER"),
    maxMs: readInteger(env, "POP_WAIT_MAX_INTERVAL_MS", {
      fallback: POP_WAIT_DEFAULTS.maxMs,
      min: 1,
    }),
  };
}

function readMultiplier(env: Env, name: string): number {
  const text = readText(env, name);
  if (text === undefined) return POP_WAIT_DEFAULTS.multiplier;
  const value = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : NaN;
  // Less than 1 would make the waits shorter as they go, down to a busy loop.
  if (!(value >= 1)) {
    throw new ConfigError(`${name} must be a number of at least 1, not ${JSON.stringify(text)}`);
  }
  return value;
}

/** The waits between the backoff polls of one line of parked pops. */
export class PopBackoff {
  readonly #settings: PopWaitSettings;
  /** The query that made the pop wait was the first empty one. */
  #emptyCount = 1;

  /** Starts at the initial interval. */
  constructor(settings: PopWaitSettings) {
    this.#settings = settings;
  }

  /** How long to wait before the next poll, in milliseconds. */
  get delayMs(): number {
    const { initialMs, threshold, multiplier, maxMs } = this.#settings;
    const count = this.#emptyCount;
    return Math.min(count <= threshold ? initialMs : initialMs * count * multiplier, maxMs);
  }

  /** A poll came up empty. */
  countEmpty(): void {
    this.#emptyCount++;
  }

  /** Starts over: a wake came, or a poll found something. */
  reset(): void {
    this.#emptyCount = 1;
  }
}
