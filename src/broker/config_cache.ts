import type { TenantId } from "./store/store.ts";

/** What a replica keeps of a queue's configuration. */
export interface QueueFacts {
  /** How long a lease lasts, in seconds. */
  readonly leaseSeconds: number;
  /** Whether its messages are stored encrypted. */
  readonly encryptionEnabled: boolean;
}

/** Which queue. */
export interface QueueKey {
  /** The tenant. */
  readonly tenant: TenantId;
  /** The queue's name. */
  readonly queue: string;
}

/** What a {@linkcode ConfigCache} is made of. */
export interface ConfigCacheOptions {
  /**
   * Asks PostgreSQL: resolves to undefined where there is no such queue, and rejects where it cannot
   * be known. It must settle, also where PostgreSQL does not answer.
   */
  readonly load: (key: QueueKey) => Promise<QueueFacts | undefined>;
  /** At most this many queues are kept, from 1 up; {@linkcode QUEUES_MAX} by default. */
  readonly queuesMax?: number;
}

/** How many queues are kept by default. The one that was asked for first makes room for another. */
export const QUEUES_MAX = 10_000;

/** The generation of an entry that PostgreSQL has said nothing about. */
const NEVER = -1;

/** A look-up under way. */
interface LookUp {
  /** During which generation it began. */
  readonly generation: number;
  readonly facts: Promise<QueueFacts | undefined>;
}

/** What is known of one queue, until it is dropped. */
interface Entry {
  readonly key: QueueKey;
  /** What PostgreSQL said last. */
  facts: QueueFacts | undefined;
  /** During which generation it was asked for that. */
  generation: number;
  /** The latest look-up, while it is under way. */
  lookUp: LookUp | undefined;
}

/**
 * Lease time and encryption flag by (tenant, queue).
 *
 * A look-up that was under way when its entry was dropped answers those who had asked before, and
 * puts nothing back: whoever asks after the drop gets a look-up that began after it.
 */
export class ConfigCache {
  readonly #load: (key: QueueKey) => Promise<QueueFacts | undefined>;
  readonly #queuesMax: number;
  /** Queue, tenant. The queue comes first for the sake of frames without a tenant. */
  readonly #queues = new Map<string, Map<TenantId, Entry>>();
  /** All entries, oldest first. */
  readonly #entries = new Set<Entry>();
  /** Goes up when all are dropped at once. */
  #generation = 0;

  /** Knows nothing yet. */
  constructor({ load, queuesMax = QUEUES_MAX }: ConfigCacheOptions) {
    this.#load = load;
    this.#queuesMax = queuesMax;
  }

  /** How many queues are kept. */
  get size(): number {
    return this.#entries.size;
  }

  /** What is known without asking, or undefined. */
  peek(key: QueueKey): QueueFacts | undefined {
    const entry = this.#find(key);
    return entry?.generation === this.#generation ? entry.facts : undefined;
  }

  /**
   * What PostgreSQL last said of the queue since its configuration was last known to change, or
   * undefined. A reconcile's {@linkcode ConfigCache.dropAll | dropAll} does not forget it: this is for
   * when PostgreSQL cannot be asked.
   */
  lastKnown(key: QueueKey): QueueFacts | undefined {
    return this.#find(key)?.facts;
  }

  /**
   * What is known, or what PostgreSQL says. Those who ask at the same time share one look-up.
   *
   * Resolves to undefined where there is no such queue, and rejects as the look-up does; neither is
   * kept, and neither says that the queue is not encrypted.
   */
  async get(key: QueueKey): Promise<QueueFacts | undefined> {
    const entry = this.#find(key) ?? this.#make(key);
    if (entry.generation === this.#generation) return entry.facts;
    const { lookUp } = entry;
    return await (lookUp?.generation === this.#generation ? lookUp.facts : this.#lookUp(entry));
  }

  /** A queue was configured or deleted; that of every tenant where none is given (TEN-2, CFG-1). */
  drop(tenant: TenantId | undefined, queue: string): void {
    const tenants = this.#queues.get(queue);
    if (tenants === undefined) return;
    const dropped = tenant === undefined ? [...tenants.values()] : [tenants.get(tenant)];
    for (const entry of dropped) if (entry !== undefined) this.#remove(entry);
  }

  /** Asks for everything anew from here on (REC-1). */
  dropAll(): void {
    this.#generation++;
  }

  #lookUp(entry: Entry): Promise<QueueFacts | undefined> {
    const facts = this.#ask(entry.key);
    const lookUp = { generation: this.#generation, facts };
    entry.lookUp = lookUp;
    facts.then(
      (facts) => this.#answered(entry, { lookUp, facts }),
      // Those who asked are told why.
      () => this.#endInVain(entry, lookUp),
    );
    return facts;
  }

  async #ask(key: QueueKey): Promise<QueueFacts | undefined> {
    return await this.#load(key);
  }

  #answered(
    entry: Entry,
    { lookUp, facts }: { readonly lookUp: LookUp; readonly facts: QueueFacts | undefined },
  ): void {
    // All were dropped since: what it says may be old.
    if (lookUp.generation !== this.#generation) {
      this.#endInVain(entry, lookUp);
      return;
    }
    entry.lookUp = undefined;
    entry.facts = facts;
    entry.generation = lookUp.generation;
    if (facts === undefined) this.#remove(entry);
  }

  /** Ends a look-up that brought nothing to keep. */
  #endInVain(entry: Entry, lookUp: LookUp): void {
    // A newer one may have taken its place.
    if (entry.lookUp !== lookUp) return;
    entry.lookUp = undefined;
    if (entry.facts === undefined) this.#remove(entry);
  }

  #find({ tenant, queue }: QueueKey): Entry | undefined {
    return this.#queues.get(queue)?.get(tenant);
  }

  #make({ tenant, queue }: QueueKey): Entry {
    for (const oldest of this.#entries) {
      if (this.#entries.size < this.#queuesMax) break;
      this.#remove(oldest);
    }
    const entry: Entry = {
      key: { tenant, queue },
      facts: undefined,
      generation: NEVER,
      lookUp: undefined,
    };
    let tenants = this.#queues.get(queue);
    if (tenants === undefined) this.#queues.set(queue, tenants = new Map());
    tenants.set(tenant, entry);
    this.#entries.add(entry);
    return entry;
  }

  /** Takes an entry out. One that is out already is nobody's any more, whatever becomes of it. */
  #remove(entry: Entry): void {
    if (!this.#entries.delete(entry)) return;
    const { tenant, queue } = entry.key;
    const tenants = this.#queues.get(queue);
    tenants?.delete(tenant);
    if (tenants?.size === 0) this.#queues.delete(queue);
  }
}
