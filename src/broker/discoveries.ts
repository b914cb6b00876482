import type { TenantId } from "./store/store.ts";
import type { WaitGroup } from "./wait_group.ts";

/** What a pop waits for that names no queue. */
export interface DiscoveryTarget {
  /** The tenant. */
  readonly tenant: TenantId;
  /** The consumer group, that of queue mode for none. */
  readonly group: string;
  /** The namespace of the queues; any where it is left out. */
  readonly namespace?: string | undefined;
  /** The task of the queues; any where it is left out. */
  readonly task?: string | undefined;
}

/** A wake of one queue. */
export interface QueueWake {
  /** The tenant, or undefined for every tenant with such a queue (TEN-2). */
  readonly tenant: TenantId | undefined;
  /** The queue. */
  readonly queue: string;
  /** The partition, `""` where nobody knows which. */
  readonly partition: string;
  /** The group that can take it; every group where it is left out. */
  readonly group?: string | undefined;
}

/** Those who wait for the same namespace, task and group. */
interface Discovery {
  readonly target: DiscoveryTarget;
  readonly waiters: WaitGroup;
  /** The queues that matched when one of them looked last. */
  queues: ReadonlySet<string>;
}

/**
 * The name under which the waiters of a discovery hold a wake. It is never `""`, and no two partitions
 * of two queues share one: names hold no control characters.
 */
export function discoveredPartition(queue: string, partition: string): string {
  return `${queue}\n${partition}`;
}

/**
 * Which queues those who wait by namespace and task wait for. It learns that from their queries:
 * a wake of a queue that nobody discovers finds nothing here by one look-up.
 */
export class Discoveries {
  readonly #tenants = new Map<TenantId, Map<string, Discovery>>();
  readonly #queues = new Map<string, Map<TenantId, Set<Discovery>>>();

  /** How many there are: none is kept longer than somebody waits. */
  get size(): number {
    let size = 0;
    for (const discoveries of this.#tenants.values()) size += discoveries.size;
    return size;
  }

  /** Everybody who waits. */
  *groups(): Iterable<WaitGroup> {
    for (const discoveries of this.#tenants.values()) {
      for (const { waiters } of discoveries.values()) yield waiters;
    }
  }

  /** Those who wait for `target`; `make` is told what to call when the last one has left. */
  group(target: DiscoveryTarget, make: (onEmpty: () => void) => WaitGroup): WaitGroup {
    let discoveries = this.#tenants.get(target.tenant);
    if (discoveries === undefined) this.#tenants.set(target.tenant, discoveries = new Map());
    const key = keyOf(target);
    let discovery = discoveries.get(key);
    if (discovery === undefined) {
      const waiters = make(() => this.#forget(target));
      discovery = { target, waiters, queues: new Set() };
      discoveries.set(key, discovery);
    }
    return discovery.waiters;
  }

  /**
   * Says which queues match. Returns whether one of them is news: what was pushed there before now has
   * woken nobody, so that whoever found nothing has to look once more.
   */
  resolve(target: DiscoveryTarget, queues: readonly string[]): boolean {
    const discovery = this.#tenants.get(target.tenant)?.get(keyOf(target));
    if (discovery === undefined) return false;
    const old = discovery.queues;
    const added = queues.filter((queue) => !old.has(queue));
    if (added.length === 0 && queues.length === old.size) return false;
    discovery.queues = new Set(queues);
    for (const queue of old) if (!discovery.queues.has(queue)) this.#unlink(discovery, queue);
    for (const queue of added) {
      let tenants = this.#queues.get(queue);
      if (tenants === undefined) this.#queues.set(queue, tenants = new Map());
      const linked = tenants.get(target.tenant);
      if (linked === undefined) tenants.set(target.tenant, new Set([discovery]));
      else linked.add(discovery);
    }
    return added.length > 0;
  }

  /** Says that there is something to take from a queue. */
  wake({ tenant, queue, partition, group }: QueueWake): void {
    const tenants = this.#queues.get(queue);
    if (tenants === undefined) return;
    const touched = tenant === undefined ? [...tenants.values()] : [tenants.get(tenant) ?? []];
    for (const discoveries of touched) {
      for (const { target, waiters } of [...discoveries]) {
        if (group !== undefined && group !== target.group) continue;
        waiters.wake(discoveredPartition(queue, partition));
      }
    }
  }

  /** Says that the queues of a tenant, or of all, are not what they were: each has to look. */
  wakeAll(tenant: TenantId | undefined): void {
    const touched = tenant === undefined
      ? [...this.#tenants.values()]
      : [this.#tenants.get(tenant) ?? new Map<string, Discovery>()];
    for (const discoveries of touched) {
      for (const { waiters } of [...discoveries.values()]) waiters.wake("");
    }
  }

  #forget(target: DiscoveryTarget): void {
    const discoveries = this.#tenants.get(target.tenant);
    const discovery = discoveries?.get(keyOf(target));
    if (discoveries === undefined || discovery === undefined) return;
    for (const queue of discovery.queues) this.#unlink(discovery, queue);
    discoveries.delete(keyOf(target));
    if (discoveries.size === 0) this.#tenants.delete(target.tenant);
  }

  #unlink(discovery: Discovery, queue: string): void {
    const tenants = this.#queues.get(queue);
    const linked = tenants?.get(discovery.target.tenant);
    linked?.delete(discovery);
    if (linked?.size === 0) tenants?.delete(discovery.target.tenant);
    if (tenants?.size === 0) this.#queues.delete(queue);
  }
}

function keyOf({ group, namespace, task }: DiscoveryTarget): string {
  return JSON.stringify([group, namespace ?? null, task ?? null]);
}
