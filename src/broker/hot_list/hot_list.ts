import type { Clock, Logger, Random } from "../../mesh/runtime.ts";
import type { TenantId } from "../store/store.ts";
import { Budget } from "./budget.ts";
import type { HotListSettings } from "./config.ts";
import { getOrMake } from "./get_or_make.ts";
import { KeptRing } from "./kept_ring.ts";
import { type LoadCandidates, type RingKey, Seeder } from "./seeder.ts";
import { NO_CANDIDATES, type Taken } from "./taken.ts";

/** All rings together hold at most this much, in bytes; a name counts two for each character. */
export const HOT_LIST_BYTES_MAX: number = 128 * 1024 * 1024;

/** What a ring without candidates is counted as beside its names, in bytes. */
const RING_BYTES = 1024;

/** No partition has a longer name: 512 bytes of UTF-8. */
const NAME_LENGTH_MAX = 512;

/** That a partition may hold something to take. */
export interface Mark {
  /** The tenant, or undefined for every tenant with such a queue (TEN-2). */
  readonly tenant: TenantId | undefined;
  /** The queue. */
  readonly queue: string;
  /** The partition, `""` where nobody knows which. */
  readonly partition: string;
  /** The group that it concerns; every group where it is left out. */
  readonly group?: string | undefined;
}

/** How the hot list stands. */
export interface HotListStats {
  /** Rings. */
  readonly rings: number;
  /** What they and their candidates count as, in bytes. */
  readonly bytes: number;
  /** Rings and marks that found no room, since the start. */
  readonly refused: number;
}

/** What a {@linkcode HotList} is made of. */
export interface HotListOptions {
  /** Time. */
  readonly clock: Clock;
  /** For jitter. */
  readonly random: Random;
  /** Where failures are reported. */
  readonly logger: Logger;
  /** How it is set up. */
  readonly settings: HotListSettings;
  /** Asks PostgreSQL for candidates. */
  readonly loadCandidates: LoadCandidates;
  /** The bound of {@linkcode HOT_LIST_BYTES_MAX}, for tests. */
  readonly bytesMax?: number;
}

/**
 * Which partitions may hold something, for each queue and group that somebody polls here, so that a
 * pop need not look for them. It only speeds up: what it lacks, PostgreSQL knows.
 */
export class HotList {
  readonly #options: HotListOptions;
  readonly #budget: Budget;
  readonly #seeder: Seeder;
  /** Queue, tenant, group. The queue comes first for the sake of marks without a tenant. */
  readonly #queues = new Map<string, Map<TenantId, Map<string, KeptRing>>>();
  readonly #onIdle = (ring: KeptRing) => this.#drop(ring);
  #ringCount = 0;
  #isOpen: boolean;

  /** Makes one without rings. */
  constructor(options: HotListOptions) {
    this.#options = options;
    this.#budget = new Budget(options.bytesMax ?? HOT_LIST_BYTES_MAX);
    this.#seeder = new Seeder({ load: options.loadCandidates, logger: options.logger });
    this.#isOpen = options.settings.enabled;
  }

  /** How it stands. */
  get stats(): HotListStats {
    return { rings: this.#ringCount, bytes: this.#budget.bytes, refused: this.#budget.refused };
  }

  /**
   * Takes up to `count` candidates for a pop of the whole queue, and makes the ring at its first poll.
   * None where the ring is empty, or there is no room for one, or the hot list is off: then the pop
   * has to ask PostgreSQL.
   */
  take(key: RingKey, count: number): Taken {
    let ring = this.#queues.get(key.queue)?.get(key.tenant)?.get(key.group);
    if (ring === undefined) {
      ring = this.#make(key);
      if (ring === undefined) return NO_CANDIDATES;
    } else {
      ring.notePoll();
    }
    return ring.ring.take(count);
  }

  /** Marks the rings that there are; never makes one. It is called before the pops are woken. */
  mark(mark: Mark): void {
    const { tenant, queue, partition } = mark;
    const tenants = this.#queues.get(queue);
    if (tenants === undefined) return;
    // A partition that nobody knows, or that cannot be, is no candidate.
    if (partition === "" || partition.length > NAME_LENGTH_MAX) return;
    if (tenant === undefined) {
      for (const groups of tenants.values()) markGroups(groups, mark);
    } else {
      const groups = tenants.get(tenant);
      if (groups !== undefined) markGroups(groups, mark);
    }
  }

  /** Drops the rings of a queue that was deleted; those of every tenant where none is given. */
  dropQueue(tenant: TenantId | undefined, queue: string): void {
    const tenants = this.#queues.get(queue);
    if (tenants === undefined) return;
    const dropped = tenant === undefined ? [...tenants.values()] : [tenants.get(tenant)];
    for (const groups of dropped) {
      for (const ring of groups === undefined ? [] : [...groups.values()]) this.#drop(ring);
    }
  }

  /** Drops everything and makes no more rings; resolves once no seeding is under way. */
  async close(): Promise<void> {
    this.#isOpen = false;
    for (const queue of [...this.#queues.keys()]) this.dropQueue(undefined, queue);
    await this.#seeder.close();
  }

  #make(key: RingKey): KeptRing | undefined {
    const { tenant, queue, group } = key;
    if (!this.#isOpen || !this.#budget.take(ringBytes(key))) return undefined;
    const { clock, random, settings } = this.#options;
    const tenants = getOrMake(this.#queues, queue, () => new Map());
    const groups = getOrMake(tenants, tenant, () => new Map());
    const ring = new KeptRing({
      key: { tenant, queue, group },
      budget: this.#budget,
      clock,
      random,
      settings,
      seeder: this.#seeder,
      onIdle: this.#onIdle,
    });
    groups.set(group, ring);
    this.#ringCount++;
    return ring;
  }

  #drop(ring: KeptRing): void {
    const { key } = ring;
    const tenants = this.#queues.get(key.queue);
    const groups = tenants?.get(key.tenant);
    groups?.delete(key.group);
    if (groups?.size === 0) tenants?.delete(key.tenant);
    if (tenants?.size === 0) this.#queues.delete(key.queue);
    ring.drop();
    this.#budget.give(ringBytes(key));
    this.#ringCount--;
  }
}

function markGroups(groups: ReadonlyMap<string, KeptRing>, { partition, group }: Mark): void {
  if (group !== undefined) groups.get(group)?.ring.mark(partition);
  else for (const each of groups.values()) each.ring.mark(partition);
}

function ringBytes({ tenant, queue, group }: RingKey): number {
  return RING_BYTES + 2 * (tenant.length + queue.length + group.length);
}
