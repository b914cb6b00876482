import type { Clock, Random, Timer } from "../../mesh/runtime.ts";
import type { Budget } from "./budget.ts";
import type { HotListSettings } from "./config.ts";
import { CandidateRing } from "./ring.ts";
import type { RingKey, Seedable, Seeder } from "./seeder.ts";

/** What a {@linkcode KeptRing} is made of. */
export interface KeptRingOptions {
  /** Whose ring it is. */
  readonly key: RingKey;
  /** Where its candidates are counted. */
  readonly budget: Budget;
  /** Time. */
  readonly clock: Clock;
  /** For jitter. */
  readonly random: Random;
  /** How often it is seeded, and how long it may be idle. */
  readonly settings: HotListSettings;
  /** Seeds it. */
  readonly seeder: Seeder;
  /** Called when nobody has polled it for too long. */
  readonly onIdle: (ring: KeptRing) => void;
}

/** A ring that is seeded at once and then regularly, and that says when it is no longer used. */
export class KeptRing implements Seedable {
  readonly key: RingKey;
  readonly ring: CandidateRing;
  readonly #options: KeptRingOptions;
  #polledAt: number;
  #seededAt: number;
  #seedDueAt: number;
  #timer: Timer;

  /** Begins to be kept. */
  constructor(options: KeptRingOptions) {
    this.key = options.key;
    this.ring = new CandidateRing(options.budget);
    this.#options = options;
    this.#polledAt = options.clock.now();
    this.#seededAt = this.#polledAt;
    this.#seedDueAt = this.#polledAt + this.#seedDelayMs();
    this.#timer = this.#setTimer(this.#polledAt);
    options.seeder.request(this);
  }

  /** Somebody polls it. */
  notePoll(): void {
    this.#polledAt = this.#options.clock.now();
  }

  /** Ends its keeping and empties it. */
  drop(): void {
    this.#timer.cancel();
    this.#options.seeder.forget(this);
    this.ring.drop();
  }

  #setTimer(now: number): Timer {
    const idleAt = this.#polledAt + this.#options.settings.idleSweepMs;
    const delayMs = Math.max(0, Math.min(this.#seedDueAt, idleAt) - now);
    return this.#options.clock.setTimer(delayMs, () => this.#look());
  }

  #look(): void {
    const { clock, settings, seeder, onIdle } = this.#options;
    const now = clock.now();
    if (now - this.#polledAt >= settings.idleSweepMs) {
      onIdle(this);
      return;
    }
    if (now >= this.#seedDueAt) {
      this.#seedDueAt = now + this.#seedDelayMs();
      // A ring that nobody polls is worth no query. Who polls it again and finds it empty asks anyway.
      if (this.#polledAt >= this.#seededAt) {
        this.#seededAt = now;
        seeder.request(this);
      }
    }
    this.#timer = this.#setTimer(now);
  }

  /** The jitter shortens by a fifth at most and never lengthens, so that the interval holds. */
  #seedDelayMs(): number {
    const { random, settings } = this.#options;
    const bytes = random(new Uint8Array(4));
    const fraction = new DataView(bytes.buffer).getUint32(0) / 2 ** 32;
    return settings.reseedMs * (1 - fraction / 5);
  }
}
