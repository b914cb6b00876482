import type { EncryptedQueue, TenantId } from "./store/store.ts";

/** More are not kept: then it is not known of any queue whether it is encrypted. */
export const ENCRYPTED_QUEUES_MAX = 100_000;

/** What {@linkcode EncryptedQueues} are made of. */
export interface EncryptedQueuesOptions {
  /** Asks PostgreSQL for all encrypted queues, at most so many. Must settle. */
  readonly load: (countMax: number) => Promise<readonly EncryptedQueue[]>;
  /** Remembers what is known, undefined for nothing, beyond the end of the process. Never rejects. */
  readonly remember: (queues: readonly EncryptedQueue[] | undefined) => Promise<void>;
}

/**
 * Which queues were encrypted when PostgreSQL was last asked. For a replica without a key: what is not
 * among them, and has not changed since, may lie on its disk as it is while PostgreSQL is away.
 */
export class EncryptedQueues {
  readonly #load: (countMax: number) => Promise<readonly EncryptedQueue[]>;
  readonly #remember: (queues: readonly EncryptedQueue[] | undefined) => Promise<void>;
  #known: ReadonlySet<string> | undefined;
  /** By name, whoever's: those that may have changed since the latest read began. */
  #changed = new Set<string>();
  /** Those that the read under way is for. */
  #asked = new Set<string>();
  #reading: Promise<void> | undefined;
  /** The read after the one under way, for all who asked meanwhile. */
  #next: Promise<void> | undefined;

  /** Knows nothing yet. */
  constructor({ load, remember }: EncryptedQueuesOptions) {
    this.#load = load;
    this.#remember = remember;
  }

  /** Whether the queue was not encrypted when PostgreSQL was last asked, as far as is known. */
  isClear(tenant: TenantId, queue: string): boolean {
    if (this.#known === undefined) return false;
    if (this.#changed.has(queue) || this.#asked.has(queue)) return false;
    return !this.#known.has(keyOf(tenant, queue));
  }

  /** Knows what was remembered, until PostgreSQL is asked. */
  recall(queues: readonly EncryptedQueue[] | undefined): void {
    this.#known = queues && new Set(queues.map(({ tenant, queue }) => keyOf(tenant, queue)));
  }

  /**
   * A queue may have changed. PostgreSQL is asked again: however many changes there are, by one read at
   * a time.
   */
  noteChanged(queue: string): void {
    this.#note([queue]);
    // Where it fails, the reconcile asks again.
    this.refresh().catch(() => {});
  }

  /** Asks PostgreSQL, by a read that begins from now on. Rejects where it does not answer. */
  refresh(): Promise<void> {
    if (this.#reading === undefined) return this.#begin();
    const begin = () => this.#begin();
    return this.#next ??= this.#reading.then(begin, begin);
  }

  /** Resolves once no read is under way. */
  async settle(): Promise<void> {
    while (this.#reading !== undefined) await this.#reading.catch(() => {});
  }

  #begin(): Promise<void> {
    this.#next = undefined;
    const reading = this.#read().finally(() => {
      this.#reading = undefined;
    });
    this.#reading = reading;
    return reading;
  }

  async #read(): Promise<void> {
    this.#asked = this.#changed;
    this.#changed = new Set();
    try {
      const queues = await this.#load(ENCRYPTED_QUEUES_MAX + 1);
      const known = queues.length > ENCRYPTED_QUEUES_MAX ? undefined : queues;
      this.recall(known);
      await this.#remember(known);
    } catch (error) {
      this.#note(this.#asked);
      throw error;
    } finally {
      this.#asked = new Set();
    }
  }

  #note(queues: Iterable<string>): void {
    for (const queue of queues) this.#changed.add(queue);
    if (this.#changed.size <= ENCRYPTED_QUEUES_MAX) return;
    this.#known = undefined;
    this.#changed.clear();
  }
}

function keyOf(tenant: TenantId, queue: string): string {
  return `${tenant} ${queue}`;
}
