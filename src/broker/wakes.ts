import type { OutgoingMessage } from "../protocol/messages.ts";
import type { DirtyHints } from "./hot_list/dirty_hints.ts";
import type { HotList } from "./hot_list/hot_list.ts";
import type { DelayedPartition, TenantId, TouchedPartition } from "./store/store.ts";
import type { Waker } from "./waker.ts";

/** What {@linkcode Wakes} are made of. */
export interface WakesOptions {
  /** The pops that wait here. */
  readonly waker: Waker;
  /** Tells every peer; never waits. */
  readonly broadcast: (message: OutgoingMessage) => void;
  /** The candidates here; none are marked where it is left out. */
  readonly hotList?: Pick<HotList, "mark">;
  /** What the peers are told of candidates; nothing where it is left out. */
  readonly dirtyHints?: Pick<DirtyHints, "add">;
}

/** Announces partitions later, each when its delay is over. */
export type Postpone = (
  tenant: TenantId,
  delayed: readonly DelayedPartition[],
  options: { readonly group?: string },
) => void;

/**
 * Says that there is something to take, after the commit that put it there returned: to the pops that
 * wait here first, then to the peers (WAK-1).
 */
export class Wakes {
  readonly #waker: Waker;
  readonly #broadcast: (message: OutgoingMessage) => void;
  readonly #hotList: Pick<HotList, "mark"> | undefined;
  readonly #dirtyHints: Pick<DirtyHints, "add"> | undefined;
  #postpone: Postpone | undefined;

  /** Puts the two together. */
  constructor({ waker, broadcast, hotList, dirtyHints }: WakesOptions) {
    this.#waker = waker;
    this.#broadcast = broadcast;
    this.#hotList = hotList;
    this.#dirtyHints = dirtyHints;
  }

  /** Hands what can be taken later to `postpone`, which announces it when it is time. */
  postponeBy(postpone: Postpone): void {
    this.#postpone = postpone;
  }

  /**
   * Announces partitions, in one frame for all of them. None at all wakes nobody.
   *
   * @param group The only group that can take from them; every group where it is left out. Frames do
   * not say it.
   */
  announce(
    tenant: TenantId,
    touched: readonly TouchedPartition[],
    { group }: { readonly group?: string } = {},
  ): void {
    const delayed = touched.filter(isDelayed);
    const partitions = delayed.length === 0 ? touched : touched.filter((each) => !isDelayed(each));
    if (delayed.length > 0) this.#postpone?.(tenant, delayed, group === undefined ? {} : { group });
    if (partitions.length === 0) return;
    for (const { queue, partition } of partitions) {
      // Whoever is woken finds it marked.
      this.#hotList?.mark({ tenant, queue, partition, group });
      this.#waker.wake({ tenant, queue, partition, group });
    }
    this.#broadcast({
      type: "message_available",
      items: partitions.map(({ queue, partition }) => ({ queue, partition, tenant })),
    });
    this.#dirtyHints?.add(tenant, partitions, { group });
  }
}

function isDelayed(partition: TouchedPartition): partition is DelayedPartition {
  return partition.delayMs !== undefined;
}
