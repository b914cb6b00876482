import { Backoff } from "../mesh/backoff.ts";
import { type Env, readInteger } from "../mesh/env.ts";
import type { Clock, Random, Timer } from "../mesh/runtime.ts";

/** How often a replica reconciles where the environment says nothing, in milliseconds. */
export const CACHE_REFRESH_MS = 60_000;

/**
 * Reads `QUEEN_CACHE_REFRESH_INTERVAL_MS` (protocol, section 9).
 *
 * @throws {ConfigError} Where it cannot be used.
 */
export function cacheRefreshFromEnv(env: Env): number {
  return readInteger(env, "QUEEN_CACHE_REFRESH_INTERVAL_MS", {
    fallback: CACHE_REFRESH_MS,
    min: 1,
  });
}

/** What a {@linkcode Reconciler} is made of. */
export interface ReconcilerOptions {
  /** Time. */
  readonly clock: Clock;
  /** For jitter. */
  readonly random: Random;
  /** How often it reconciles, in milliseconds. */
  readonly intervalMs: number;
  /** Reads the flags from PostgreSQL and applies them. Rejects, and reports why, where it cannot. */
  readonly refreshFlags: () => Promise<void>;
  /** Drops what may have changed unnoticed. */
  readonly dropCaches: () => void;
}

/**
 * Makes the replica agree with PostgreSQL regularly, whatever frames were lost (REC-1). Where
 * PostgreSQL cannot be reached nothing changes, and it is tried again soon.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #backoff: Backoff;
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;

  /** Does nothing before {@linkcode Reconciler.start | start}. */
  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.random);
  }

  /** Reconciles at once, and regularly from then on. */
  start(): void {
    if (!this.#isClosed && this.#timer === undefined && this.#running === undefined) this.#begin();
  }

  /** Does it no more; resolves once nothing is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#running;
  }

  #begin(): void {
    this.#timer = undefined;
    this.#running = this.#reconcile();
  }

  async #reconcile(): Promise<void> {
    const { clock, intervalMs, refreshFlags, dropCaches } = this.#options;
    const dueAt = clock.now() + intervalMs;
    // Why it failed has been reported by whoever reads the flags.
    const hasAnswered = await refreshFlags().then(() => true, () => false);
    if (hasAnswered) {
      this.#backoff.reset();
      dropCaches();
    }
    const delayMs = hasAnswered ? dueAt - clock.now() : Math.min(this.#backoff.next(), intervalMs);
    this.#running = undefined;
    if (this.#isClosed) return;
    this.#timer = clock.setTimer(Math.max(0, delayMs), () => this.#begin());
  }
}
