import type { Clock } from "./runtime.ts";

/** A wait that can be cut short. One at a time. */
export class Pause {
  readonly #clock: Clock;
  #finish: (() => void) | undefined;

  /** Nobody waits yet. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after `ms` milliseconds, or as soon as {@linkcode Pause.end | end} is called. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        timer.cancel();
        this.#finish = undefined;
        resolve();
      };
      const timer = this.#clock.setTimer(ms, finish);
      this.#finish = finish;
    });
  }

  /** Cuts the wait short, if there is one. */
  end(): void {
    this.#finish?.();
  }
}
