import type { Clock, Timer } from "./runtime.ts";

/** What a {@linkcode StallWatch} does. */
export interface StallWatchOptions {
  /** Bytes that nobody takes for this many milliseconds are a stall. */
  readonly stallMs: number;
  /** Told of a stall, once. */
  readonly onStall: () => void;
}

/**
 * Notices a peer that takes no byte of what the kernel is handed for it. One timer watches any
 * number of writes: when it is due it looks at the latest of them, so that a write costs no timer.
 */
export class StallWatch {
  readonly #clock: Clock;
  readonly #options: StallWatchOptions;
  #isHanded = false;
  #handedMs = 0;
  #timer: Timer | undefined;

  /** Watches nothing yet. */
  constructor(clock: Clock, options: StallWatchOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** The kernel is handed bytes. */
  handed(): void {
    this.#isHanded = true;
    this.#handedMs = this.#clock.now();
    this.#timer ??= this.#clock.setTimer(this.#options.stallMs, () => this.#check());
  }

  /** It took some of them. */
  taken(): void {
    this.#isHanded = false;
  }

  /** Nothing is to be watched any more. */
  stop(): void {
    this.#isHanded = false;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #check(): void {
    this.#timer = undefined;
    if (!this.#isHanded) return;
    const leftMs = this.#handedMs + this.#options.stallMs - this.#clock.now();
    if (leftMs > 0) this.#timer = this.#clock.setTimer(leftMs, () => this.#check());
    else this.#options.onStall();
  }
}
