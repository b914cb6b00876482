import type { Clock, Timer } from "../../mesh/runtime.ts";

/** No push waits longer than this for a batch to drain, in milliseconds. */
export const HANDOVER_WAIT_MS_MAX = 1000;

/**
 * Whether pushes to partitions that the spool holds should wait for the batch that is being drained,
 * because it may hold them no more after that.
 */
export class Handover {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  #isOpen = false;
  #timer: Timer | undefined;

  /** Nobody waits yet. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether it is worth while to wait. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A batch has ended, and this is so for the next one. It is not if that one takes too long. */
  update(isOpen: boolean): void {
    this.#timer?.cancel();
    this.#timer = isOpen
      ? this.#clock.setTimer(HANDOVER_WAIT_MS_MAX, () => this.update(false))
      : undefined;
    this.#isOpen = isOpen;
    this.lookAgain();
  }

  /** Whoever waits looks again. */
  lookAgain(): void {
    for (const resolve of this.#waiting) resolve();
  }

  /** Resolves as soon as it is worth while to look again, after `ms` milliseconds at the latest. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        timer.cancel();
        this.#waiting.delete(finish);
        resolve();
      };
      const timer = this.#clock.setTimer(ms, finish);
      this.#waiting.add(finish);
    });
  }
}
