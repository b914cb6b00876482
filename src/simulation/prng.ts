/**
 * Random numbers that a seed repeats.
 *
 * @module
 */

import type { Random } from "../mesh/runtime.ts";

/**
 * A small, fast generator (sfc32) that gives the same numbers for the same seed on every machine.
 * It is for simulation alone: its numbers can be predicted.
 *
 * @example
 * ```ts ignore
 * const prng = new Prng(1);
 * prng.integer(1, 6);
 * ```
 */
export class Prng {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  /** Makes a generator from `seed`, of which the lowest 53 bits count. */
  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.trunc(seed / 2 ** 32) | 0;
    this.#c = 0x9e3779b9 | 0;
    // The first numbers of neighbouring seeds are alike; a few rounds take them apart.
    for (let round = 0; round < 12; round++) this.uint32();
  }

  /** The next number from 0 to 2^32 - 1. */
  uint32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum | 0;
    return sum >>> 0;
  }

  /** The next number from 0 up to, but not including, 1. */
  real(): number {
    return this.uint32() / 2 ** 32;
  }

  /** The next whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.real() * (max - min + 1));
  }

  /** True with the probability `p`. Draws nothing where `p` leaves no choice. */
  chance(p: number): boolean {
    return p > 0 && (p >= 1 || this.real() < p);
  }

  /**
   * One of `items`.
   *
   * @throws {RangeError} If there are none.
   */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError("Cannot pick from an empty list");
    return items[this.integer(0, items.length - 1)]!;
  }

  /** A generator of its own, so that what draws from it does not disturb what draws from this. */
  fork(): Prng {
    return new Prng(this.uint32() * 2 ** 21 + (this.uint32() >>> 11));
  }

  /** Fills bytes: the {@linkcode Random} of a runtime. */
  readonly random: Random = (bytes) => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = this.uint32() >>> 24;
    return bytes;
  };
}
