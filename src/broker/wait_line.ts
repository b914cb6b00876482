import type { Clock, Timer } from "../mesh/runtime.ts";
import { PopBackoff, type PopWaitSettings } from "./backoff.ts";
import { ParkedList } from "./parked_list.ts";
import type { Waiter } from "./waiter.ts";

/** What a {@linkcode WaitLine} is made of. */
export interface WaitLineOptions {
  /** The partition that its waiters take from, `""` for any. */
  readonly partition: string;
  /** Time. */
  readonly clock: Clock;
  /** How often it polls. */
  readonly settings: PopWaitSettings;
  /** Told of every change of the count of those parked. */
  readonly onParked: (change: 1 | -1) => void;
}

/**
 * The waiters of one group that can take the same things. One backoff poll serves them all: each time,
 * the one parked longest runs its own query. While nobody is parked there is no timer.
 */
export class WaitLine {
  /** The partition that its waiters take from, `""` for any. */
  readonly partition: string;
  readonly #clock: Clock;
  readonly #backoff: PopBackoff;
  readonly #onParked: (change: 1 | -1) => void;
  readonly #parked = new ParkedList<Waiter>();
  readonly #querying = new Set<Waiter>();
  #poller: Waiter | undefined;
  #timer: Timer | undefined;
  #dueAt = 0;

  /** Makes an empty line. */
  constructor({ partition, clock, settings, onParked }: WaitLineOptions) {
    this.partition = partition;
    this.#clock = clock;
    this.#backoff = new PopBackoff(settings);
    this.#onParked = onParked;
  }

  /** Whether nobody is in it. */
  get isEmpty(): boolean {
    return this.#parked.size === 0 && this.#querying.size === 0;
  }

  /** The oldest of those parked. */
  get oldestParked(): Waiter | undefined {
    return this.#parked.first;
  }

  /** One of those querying, another one each time, so that wakes spread over them. */
  nextQuerying(): Waiter | undefined {
    for (const waiter of this.#querying) {
      this.#querying.delete(waiter);
      this.#querying.add(waiter);
      return waiter;
    }
    return undefined;
  }

  /** Takes in a new waiter, which is about to query. */
  arm(waiter: Waiter): void {
    this.#querying.add(waiter);
  }

  /** Moves a waiter from querying to parked. */
  park(waiter: Waiter): void {
    this.#querying.delete(waiter);
    this.#parked.add(waiter);
    this.#onParked(1);
    if (this.#timer === undefined) this.#schedule();
  }

  /** Moves a waiter from parked to querying. */
  unpark(waiter: Waiter): void {
    this.#removeParked(waiter);
    this.#querying.add(waiter);
  }

  /** Takes a waiter out. */
  remove(waiter: Waiter, { isParked }: { readonly isParked: boolean }): void {
    if (isParked) this.#removeParked(waiter);
    else this.#querying.delete(waiter);
    // A poll whose client left still ends: its query is under way, and what it takes is given back.
    if (this.#poller === waiter) {
      this.#poller = undefined;
      this.#schedule();
    }
  }

  /** A wake came: the next poll is due within the initial interval. */
  wake(): void {
    this.#backoff.reset();
    if (this.#timer === undefined || this.#dueAt <= this.#clock.now() + this.#backoff.delayMs) {
      return;
    }
    this.#cancel();
    this.#schedule();
  }

  /** The query of `waiter` ended. If it was the poll, the next one is due after the backoff. */
  endPoll(waiter: Waiter, hasFound: boolean): void {
    if (this.#poller !== waiter) return;
    this.#poller = undefined;
    if (hasFound) this.#backoff.reset();
    else this.#backoff.countEmpty();
    this.#schedule();
  }

  #removeParked(waiter: Waiter): void {
    this.#parked.remove(waiter);
    this.#onParked(-1);
    if (this.#parked.size === 0) this.#cancel();
  }

  #schedule(): void {
    if (this.#parked.size === 0 || this.#poller !== undefined) return;
    const delayMs = this.#backoff.delayMs;
    this.#dueAt = this.#clock.now() + delayMs;
    this.#timer = this.#clock.setTimer(delayMs, () => this.#poll());
  }

  #poll(): void {
    this.#timer = undefined;
    this.#poller = this.#parked.first;
    this.#poller?.release("poll");
  }

  #cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
