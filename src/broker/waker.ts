import { QUEUE_MODE } from "./store/names.ts";
import type { Clock } from "../mesh/runtime.ts";
import type { PopWaitSettings } from "./backoff.ts";
import { Discoveries, type DiscoveryTarget } from "./discoveries.ts";
import type { TenantId } from "./store/store.ts";
import { WaitGroup } from "./wait_group.ts";
import { Waiter } from "./waiter.ts";

export { QUEUE_MODE };

/** What a pop waits for. */
export interface WaitTarget {
  /** The tenant. */
  readonly tenant: TenantId;
  /** The queue. */
  readonly queue: string;
  /** The consumer group, {@linkcode QUEUE_MODE} for none. */
  readonly group: string;
  /** One partition alone; any where it is left out. */
  readonly partition?: string | undefined;
}

/** That there is something to take. */
export interface Wake {
  /** The tenant, or undefined for every tenant with such a queue (TEN-2). */
  readonly tenant: TenantId | undefined;
  /** The queue. */
  readonly queue: string;
  /** The partition, `""` where nobody knows which. */
  readonly partition: string;
  /** The group that can take it; every group where it is left out. */
  readonly group?: string | undefined;
}

/** What a {@linkcode Waker} is made of. */
export interface WakerOptions {
  /** Time. */
  readonly clock: Clock;
  /** How often parked pops poll. */
  readonly popWait: PopWaitSettings;
}

/**
 * Holds the pops that wait and lets them go on: the right ones, and no more of them than there is to
 * take. In memory alone: it knows nothing of queries, which those who wait run by themselves.
 */
export class Waker {
  readonly #clock: Clock;
  readonly #popWait: PopWaitSettings;
  /** Queue, tenant, group. The queue comes first for the sake of wakes without a tenant. */
  readonly #queues = new Map<string, Map<TenantId, Map<string, WaitGroup>>>();
  readonly #discoveries = new Discoveries();
  #sequence = 0;
  #ticks = 0;
  #parkedCount = 0;
  #isClosed = false;

  /** Makes a waker without waiters. */
  constructor({ clock, popWait }: WakerOptions) {
    this.#clock = clock;
    this.#popWait = popWait;
  }

  /** How many are parked. */
  get parkedCount(): number {
    return this.#parkedCount;
  }

  /** How many queues somebody waits for: none is kept for longer. */
  get queueCount(): number {
    return this.#queues.size;
  }

  /** How many namespaces and tasks somebody waits for: none is kept for longer. */
  get discoveryCount(): number {
    return this.#discoveries.size;
  }

  /**
   * Arms a waiter, before its first query. Whoever asks for it must end it, by
   * {@linkcode Waiter.found | found} or {@linkcode Waiter.leave | leave}.
   *
   * @param timeoutMs How long it waits at most, in milliseconds.
   */
  arm(target: WaitTarget | DiscoveryTarget, timeoutMs: number): Waiter {
    const isDiscovery = !("queue" in target);
    const group = isDiscovery
      ? this.#discoveries.group(target, (onEmpty) => this.#makeGroup(onEmpty))
      : this.#group(target);
    const waiter = new Waiter({
      sequence: this.#sequence++,
      armedAt: this.#clock.now(),
      tick: () => ++this.#ticks,
      group,
      line: group.line(isDiscovery ? undefined : target.partition),
    });
    if (this.#isClosed) waiter.expire("closed");
    waiter.timeout = this.#clock.setTimer(timeoutMs, () => waiter.expire("timeout"));
    return waiter;
  }

  /** Says that there is something to take: releases one matching waiter in each group. */
  wake(wake: Wake): void {
    this.#discoveries.wake(wake);
    const { tenant, queue, partition, group } = wake;
    const tenants = this.#queues.get(queue);
    if (tenants === undefined) return;
    const touched = tenant === undefined ? tenants.values() : [tenants.get(tenant)];
    for (const groups of touched) {
      if (groups === undefined) continue;
      if (group !== undefined) groups.get(group)?.wake(partition);
      else for (const each of groups.values()) each.wake(partition);
    }
  }

  /**
   * Says which queues match what somebody waits for. Returns whether one of them is news: then a query
   * that came up empty has to be made once more.
   */
  resolve(target: DiscoveryTarget, queues: readonly string[]): boolean {
    return this.#discoveries.resolve(target, queues);
  }

  /**
   * Says that a queue was made or changed: those who wait by namespace and task look whether it
   * matches, one of each.
   */
  wakeDiscoveries(tenant: TenantId | undefined): void {
    this.#discoveries.wakeAll(tenant);
  }

  /** Lets everybody who waits query again, whatever there is to take. */
  wakeAll(): void {
    for (const waiter of this.#waiters()) waiter.nudge();
  }

  /** Ends all waiting, that of pops still to come too. Closing twice is harmless. */
  close(): void {
    this.#isClosed = true;
    for (const waiter of this.#waiters()) waiter.expire("closed");
  }

  #waiters(): Waiter[] {
    return [...this.#queues.values()]
      .flatMap((tenants) => [...tenants.values()])
      .flatMap((groups) => [...groups.values()])
      .concat([...this.#discoveries.groups()])
      .flatMap((group) => group.waiters());
  }

  #group({ tenant, queue, group: name }: WaitTarget): WaitGroup {
    const tenants = getOrMake(this.#queues, queue, () => new Map());
    const groups = getOrMake(tenants, tenant, () => new Map());
    return getOrMake(groups, name, () =>
      this.#makeGroup(() => {
        groups.delete(name);
        if (groups.size === 0) tenants.delete(tenant);
        if (tenants.size === 0) this.#queues.delete(queue);
      }));
  }

  #makeGroup(onEmpty: () => void): WaitGroup {
    return new WaitGroup({
      clock: this.#clock,
      settings: this.#popWait,
      onParked: (change) => this.#parkedCount += change,
      onEmpty,
    });
  }
}

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
