import type { Clock, Timer } from "../../mesh/runtime.ts";
import type { OutgoingDirtyHint, OutgoingMessage } from "../../protocol/messages.ts";
import type { PartitionName, TenantId } from "../store/store.ts";
import { getOrMake } from "./get_or_make.ts";

/** How long hints gather before they leave, in milliseconds. */
export const FLUSH_MS = 20;

/** At most this many gather; what comes beyond is dropped and counted. */
export const HINTS_MAX = 200_000;

/** So many leave in one turn of the event loop, so that requests have theirs in between. */
export const FLUSH_HINTS_MAX = 10_000;

/** What {@linkcode DirtyHints} are made of. */
export interface DirtyHintsOptions {
  /** Time. */
  readonly clock: Clock;
  /** Tells every peer; never waits. */
  readonly broadcast: (message: OutgoingMessage) => void;
}

/** The key of the hints that concern every group. No group has an empty name. */
const EVERY_GROUP = "";

/** The partitions that became dirty in one queue, by group. */
type DirtyGroups = Map<string, Set<string>>;

/**
 * Gathers which partitions became dirty and tells the peers once in a while, each partition once
 * (HOT-1). Losing a hint costs latency and nothing else.
 */
export class DirtyHints {
  readonly #clock: Clock;
  readonly #broadcast: (message: OutgoingMessage) => void;
  readonly #tenants = new Map<TenantId, Map<string, DirtyGroups>>();
  #size = 0;
  #dropped = 0;
  #timer: Timer | undefined;
  #isClosed = false;

  /** Nothing has gathered. */
  constructor({ clock, broadcast }: DirtyHintsOptions) {
    this.#clock = clock;
    this.#broadcast = broadcast;
  }

  /** How many wait to leave. */
  get size(): number {
    return this.#size;
  }

  /** How many found the set full, since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /**
   * Notes partitions in which something became available.
   *
   * @param group The only group that it concerns; every group where it is left out.
   */
  add(
    tenant: TenantId,
    partitions: readonly PartitionName[],
    { group = EVERY_GROUP }: { readonly group?: string | undefined } = {},
  ): void {
    if (this.#isClosed) return;
    for (const { queue, partition } of partitions) {
      // Where nobody knows which partition it is, there is none to mark.
      if (partition === "") continue;
      const groups = this.#tenants.get(tenant)?.get(queue);
      if (groups?.get(EVERY_GROUP)?.has(partition) || groups?.get(group)?.has(partition)) continue;
      if (this.#size === HINTS_MAX) {
        this.#dropped++;
        continue;
      }
      this.#partitions(tenant, queue, { group }).add(partition);
      this.#size++;
    }
    if (this.#size > 0) this.#timer ??= this.#setTimer(FLUSH_MS);
  }

  /** Forgets what has not left, and what comes after. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#tenants.clear();
    this.#size = 0;
  }

  #setTimer(delayMs: number): Timer {
    return this.#clock.setTimer(delayMs, () => this.#flush());
  }

  #flush(): void {
    const items: OutgoingDirtyHint[] = [];
    for (const hint of this.#takeOut()) {
      if (items.push(hint) === FLUSH_HINTS_MAX) break;
    }
    this.#timer = this.#size > 0 ? this.#setTimer(0) : undefined;
    this.#broadcast({ type: "hotlist_dirty", items });
  }

  /** Takes hints out, one by one. What it has emptied is gone once it goes on. */
  *#takeOut(): Generator<OutgoingDirtyHint> {
    for (const [tenant, queues] of this.#tenants) {
      for (const [queue, groups] of queues) {
        for (const [group, partitions] of groups) {
          for (const partition of partitions) {
            partitions.delete(partition);
            this.#size--;
            yield group === EVERY_GROUP
              ? { tenant, queue, partition }
              : { tenant, queue, partition, group };
          }
          groups.delete(group);
        }
        queues.delete(queue);
      }
      this.#tenants.delete(tenant);
    }
  }

  #partitions(tenant: TenantId, queue: string, { group }: { readonly group: string }): Set<string> {
    const queues = getOrMake(this.#tenants, tenant, () => new Map());
    const groups: DirtyGroups = getOrMake(queues, queue, () => new Map());
    return getOrMake(groups, group, () => new Set());
  }
}
