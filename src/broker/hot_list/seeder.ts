import type { Logger } from "../../mesh/runtime.ts";
import type { TenantId } from "../store/store.ts";
import type { CandidateRing } from "./ring.ts";

/** Whose ring it is. */
export interface RingKey {
  /** The tenant. */
  readonly tenant: TenantId;
  /** The queue. */
  readonly queue: string;
  /** The consumer group; that of queue mode for none. */
  readonly group: string;
}

/**
 * Asks PostgreSQL for the partitions that a group can take from now: those that have waited longest
 * first, and at most `countMax`. It must settle, also where PostgreSQL does not answer.
 */
export type LoadCandidates = (key: RingKey, countMax: number) => Promise<readonly string[]>;

/** The most candidates that one seeding brings. A ring that runs out of them asks PostgreSQL anyway. */
export const SEED_MAX = 10_000;

/** So many seedings run at a time: they must not take the connections that pops need. */
export const SEEDINGS_MAX = 2;

/** A ring that can be seeded. */
export interface Seedable {
  /** Whose it is. */
  readonly key: RingKey;
  /** Where the candidates go. */
  readonly ring: CandidateRing;
}

/** What a {@linkcode Seeder} is made of. */
export interface SeederOptions {
  /** Asks PostgreSQL. */
  readonly load: LoadCandidates;
  /** Where failures are reported, once until PostgreSQL answers again. */
  readonly logger: Logger;
}

/** Makes rings agree with PostgreSQL, a few at a time (HOT-2). */
export class Seeder {
  readonly #load: LoadCandidates;
  readonly #logger: Logger;
  readonly #waiting = new Set<Seedable>();
  readonly #running = new Set<Promise<void>>();
  #isFailing = false;

  /** Has nothing to do yet. */
  constructor({ load, logger }: SeederOptions) {
    this.#load = load;
    this.#logger = logger;
  }

  /** Seeds a ring once it is its turn. */
  request(seedable: Seedable): void {
    this.#waiting.add(seedable);
    this.#startNext();
  }

  /** Does not seed a ring that is not seeded yet. */
  forget(seedable: Seedable): void {
    this.#waiting.delete(seedable);
  }

  /** Begins no more; resolves once nothing is under way. */
  async close(): Promise<void> {
    this.#waiting.clear();
    await Promise.all(this.#running);
  }

  #startNext(): void {
    for (const seedable of this.#waiting) {
      if (this.#running.size === SEEDINGS_MAX) return;
      this.#waiting.delete(seedable);
      const task = this.#seed(seedable).finally(() => {
        this.#running.delete(task);
        this.#startNext();
      });
      this.#running.add(task);
    }
  }

  async #seed({ key, ring }: Seedable): Promise<void> {
    // What is marked from here on may be news that PostgreSQL's answer does not hold yet.
    const { epoch } = ring;
    let partitions: readonly string[];
    try {
      partitions = await this.#load(key, SEED_MAX);
    } catch (error) {
      this.#fail(key, error);
      return;
    }
    this.#isFailing = false;
    // Marked, not merely put in: a pop that found one of them empty before must not clear it now.
    for (const partition of partitions) ring.mark(partition);
    // An answer that was cut off says nothing of those that it lacks.
    if (partitions.length < SEED_MAX) ring.clearUnmarkedSince(epoch);
  }

  #fail(key: RingKey, error: unknown): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    this.#logger.warn("A ring of the hot list could not be seeded; its pops ask PostgreSQL", {
      ...key,
      error,
    });
  }
}
