/**
 * Time that moves only when it is told to.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import type { Clock, Timer } from "../mesh/runtime.ts";

/** More timers than this at one instant mean a loop that never lets time move. */
const TIMERS_AT_ONE_INSTANT_MAX = 100_000;

/** One timer that has been set. */
class VirtualTimer implements Timer {
  readonly time: number;
  readonly sequence: number;
  readonly callback: () => void;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock, time: number, sequence: number, callback: () => void) {
    this.#clock = clock;
    this.time = time;
    this.sequence = sequence;
    this.callback = callback;
  }

  cancel(): void {
    this.#clock.remove(this);
  }
}

/**
 * A clock whose time stands still until {@linkcode VirtualClock.advance | advance} or
 * {@linkcode VirtualClock.runUntil | runUntil} moves it.
 *
 * Timers fire in the order of their times, and those of one time in the order in which they were
 * set. After each instant's timers the code that they woke comes to rest before time moves on.
 *
 * @example
 * ```ts ignore
 * const clock = new VirtualClock();
 * clock.setTimer(250, () => console.log(clock.now()));
 * await clock.advance(1000); // prints 250
 * ```
 */
export class VirtualClock implements Clock {
  #now = 0;
  #sequence = 0;
  /** In reverse: the next timer is the last one, so that taking it costs nothing. */
  readonly #timers: VirtualTimer[] = [];

  /** How many timers are set and have not fired. */
  get pending(): number {
    return this.#timers.length;
  }

  /** When the next timer fires, or `Infinity` where none is set. */
  get next(): number {
    return this.#timers.at(-1)?.time ?? Infinity;
  }

  /** Milliseconds since the clock was made. */
  now(): number {
    return this.#now;
  }

  /**
   * Calls `callback` once, `ms` milliseconds from now. A negative `ms` counts as 0.
   *
   * @throws {RangeError} If `ms` is not finite.
   */
  setTimer(ms: number, callback: () => void): Timer {
    return this.setTimerAt(this.#now + Math.max(ms, 0), callback);
  }

  /**
   * Calls `callback` once, when the clock reaches `time`, or at once where it has passed.
   *
   * @throws {RangeError} If `time` is not finite.
   */
  setTimerAt(time: number, callback: () => void): Timer {
    if (!Number.isFinite(time)) {
      throw new RangeError(`A timer needs a finite time, got ${time}`);
    }
    const at = Math.max(time, this.#now);
    const timer = new VirtualTimer(this, at, this.#sequence++, callback);
    this.#timers.splice(this.#indexOf(timer), 0, timer);
    return timer;
  }

  /** Takes `timer` out, if it has not fired yet. {@linkcode Timer.cancel} does this. */
  remove(timer: Timer): void {
    if (!(timer instanceof VirtualTimer)) return;
    const index = this.#indexOf(timer);
    if (this.#timers[index] === timer) this.#timers.splice(index, 1);
  }

  /** Moves time on by `ms` milliseconds: see {@linkcode VirtualClock.runUntil | runUntil}. */
  advance(ms: number): Promise<void> {
    return this.runUntil(this.#now + ms);
  }

  /**
   * Moves time on to `time`, fires what is due on the way, and lets all code come to rest before
   * and after. An error that a timer's callback throws is passed on.
   *
   * @param time When to stop.
   * @param isOver Asked after each timer; time stops there once it says so.
   * @throws {Error} If timers that are set at one instant never end.
   */
  async runUntil(time: number, isOver: () => boolean = () => false): Promise<void> {
    await settle();
    for (let fired = 0; this.next <= time && !isOver(); fired++) {
      if (this.next > this.#now) fired = 0;
      if (fired === TIMERS_AT_ONE_INSTANT_MAX) {
        throw new Error(`${fired} timers fired at ${this.#now} ms without time moving on`);
      }
      await this.step();
    }
    if (!isOver()) this.#now = Math.max(this.#now, time);
  }

  /**
   * Moves time on to the next timer, fires it, and lets all code come to rest. Does nothing where no
   * timer is set.
   */
  async step(): Promise<void> {
    const timer = this.#timers.pop();
    if (timer === undefined) return;
    this.#now = timer.time;
    timer.callback();
    await settle();
  }

  /** Where `timer` stands, or would stand, in the list. */
  #indexOf(timer: VirtualTimer): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#timers[middle]!;
      const isLater = other.time > timer.time ||
        (other.time === timer.time && other.sequence > timer.sequence);
      if (isLater) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * Resolves once all code that can run without a timer or real input has run: every promise chain,
 * however long. Work that leaves the event loop (Web Crypto, sockets, files) is not waited for.
 */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
