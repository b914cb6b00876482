import type { Clock, Timer } from "../mesh/runtime.ts";
import type { DelayedPartition, TenantId } from "./store/store.ts";
import type { Wakes } from "./wakes.ts";

/** So many delays are kept at a time; what comes beyond is left to the backoff. */
export const DELAYS_MAX = 10_000;

/** What {@linkcode DelayedWakes} are made of. */
export interface DelayedWakesOptions {
  /** Time. */
  readonly clock: Clock;
  /** Where to announce what has matured. */
  readonly wakes: Wakes;
}

/** Announces partitions that can be taken from later, when it is time. */
export class DelayedWakes {
  readonly #clock: Clock;
  readonly #wakes: Wakes;
  readonly #timers = new Set<Timer>();
  #isClosed = false;

  /** Makes one with nothing to announce. What `wakes` is told too early comes here. */
  constructor({ clock, wakes }: DelayedWakesOptions) {
    this.#clock = clock;
    this.#wakes = wakes;
    wakes.postponeBy((...call) => this.announce(...call));
  }

  /**
   * Announces each partition once its delay is over.
   *
   * @param group The only group that can take from them; every group where it is left out.
   */
  announce(
    tenant: TenantId,
    delayed: readonly DelayedPartition[],
    options: { readonly group?: string } = {},
  ): void {
    for (const { queue, partition, delayMs } of delayed) {
      if (this.#isClosed || this.#timers.size === DELAYS_MAX) return;
      const timer = this.#clock.setTimer(delayMs, () => {
        this.#timers.delete(timer);
        this.#wakes.announce(tenant, [{ queue, partition }], options);
      });
      this.#timers.add(timer);
    }
  }

  /** Forgets what has not matured. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}
