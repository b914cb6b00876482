import type { Random } from "./runtime.ts";

/** The first wait before a redial, in milliseconds (TOP-4). */
export const BACKOFF_MS_MIN = 250;

/** The longest wait before a redial, in milliseconds (TOP-4). */
export const BACKOFF_MS_MAX = 5000;

/** The waits between attempts to reach one peer: doubling, capped, jittered (TOP-4). */
export class Backoff {
  readonly #random: Random;
  readonly #bytes = new Uint8Array(4);
  #baseMs = BACKOFF_MS_MIN;

  /** Starts at the shortest wait. */
  constructor(random: Random) {
    this.#random = random;
  }

  /**
   * The next wait in milliseconds, and doubles the one after it. The jitter shortens a wait by a
   * fifth at most and never lengthens it, so that the cap holds.
   */
  next(): number {
    const base = this.#baseMs;
    this.#baseMs = Math.min(base * 2, BACKOFF_MS_MAX);
    this.#random(this.#bytes);
    const fraction = new DataView(this.#bytes.buffer).getUint32(0) / 2 ** 32;
    return base * (1 - fraction / 5);
  }

  /** Starts over, once a connection has proved itself. */
  reset(): void {
    this.#baseMs = BACKOFF_MS_MIN;
  }
}
