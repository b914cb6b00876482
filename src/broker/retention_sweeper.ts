import { type Env, readInteger } from "../mesh/env.ts";
import type { Clock, Logger, Timer } from "../mesh/runtime.ts";
import { type Store, StoreUnavailableError, type SweepPosition } from "./store/store.ts";

/** How often a replica sweeps where the environment says nothing, in milliseconds. */
export const RETENTION_INTERVAL_MS = 60_000;

/**
 * Reads `QUEEN_RETENTION_INTERVAL_MS`.
 *
 * @throws {ConfigError} Where it cannot be used.
 */
export function retentionIntervalFromEnv(env: Env): number {
  return readInteger(env, "QUEEN_RETENTION_INTERVAL_MS", {
    fallback: RETENTION_INTERVAL_MS,
    min: 1,
  });
}

/** What a {@linkcode RetentionSweeper} is made of. */
export interface RetentionSweeperOptions {
  /** Where the messages are. */
  readonly store: Pick<Store, "sweep">;
  /** Time. */
  readonly clock: Clock;
  /** How long it waits between two sweeps, in milliseconds. */
  readonly intervalMs: number;
  /** Where it reports. */
  readonly logger: Logger;
}

/**
 * Removes, again and again, the messages whose retention has run out and what deleted queues have left.
 * Every replica has one; PostgreSQL sees to it that they take turns.
 */
export class RetentionSweeper {
  readonly #options: RetentionSweeperOptions;
  #timer: Timer | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** Does nothing before {@linkcode RetentionSweeper.start | start}. */
  constructor(options: RetentionSweeperOptions) {
    this.#options = options;
  }

  /** Sweeps when the interval is over, and regularly from then on. */
  start(): void {
    const { clock, intervalMs } = this.#options;
    if (this.#isClosed) return;
    this.#timer = clock.setTimer(intervalMs, () => {
      this.#sweeping = this.#sweep().finally(() => this.start());
    });
  }

  /** Sweeps no more; resolves once the step under way has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { store, logger } = this.#options;
    let removed = 0;
    try {
      let position: SweepPosition | undefined;
      do {
        const step = await store.sweep(position);
        removed += step.removed;
        position = step.next;
      } while (position !== undefined && !this.#isClosed);
    } catch (error) {
      if (error instanceof StoreUnavailableError) {
        logger.info("A sweep ends early, since PostgreSQL is away", { reason: error.message });
      } else logger.error("A sweep failed", { error });
    }
    if (removed > 0) logger.info("Messages were removed, since their time was over", { removed });
  }
}
