import type { Clock, Timer } from "../../mesh/runtime.ts";

/** No push waits longer than this for a batch to drain, in milliseconds. */
export const HANDOVER_WAIT_MS_MAX = 1000;

/**
 * Whether pushes to partitions that the spool holds should wait for the batch that is being drained,
 * because then it may hold them no more.
 */
export class Handover {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  #isOpen = false;

  /** Nobody waits yet. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether it is worth while to wait. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A batch has ended, and this is so from now on. Whoever waits looks again. */
  update(isOpen: boolean): void {
    this.#isOpen = isOpen;
    for (const resolve of this.#waiting) resolve();
  }

  /** Resolves at the next {@linkcode Handover.update | update}, or after `ms` milliseconds. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        timer.cancel();
        this.#waiting.delete(finish);
        resolve();
      };
      const timer: Timer = this.#clock.setTimer(ms, finish);
      this.#waiting.add(finish);
    });
  }
}
