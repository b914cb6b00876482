import type { Clock } from "../../mesh/runtime.ts";
import type { PartitionName, PopQuery, PopResult, Store, TenantId } from "../store/store.ts";
import { QUEUE_MODE } from "../waker.ts";
import { Batcher, type BatchLimits } from "./batcher.ts";

/** What of a store pops call. */
type PopStore = Pick<Store, "pop" | "popTogether" | "giveBack">;

/** What {@linkcode BatchedPops} are made of. */
export interface BatchedPopsOptions {
  /** Where the messages are. */
  readonly store: PopStore;
  /** Time. */
  readonly clock: Pick<Clock, "now">;
  /** How large statements become; as {@linkcode POP_LIMITS} where it is left out. */
  readonly limits?: BatchLimits;
}

/** How large the statements of pops become. An item is a message that a pop may claim. */
export const POP_LIMITS: BatchLimits = {
  statementsMax: 4,
  callsMax: 16,
  itemsMax: 2000,
  charactersMax: 4 * 1024 * 1024,
};

interface Pop {
  readonly tenant: TenantId;
  readonly query: PopQuery;
}

/**
 * Claims batches as the store does; pops of one queue and one group that arrive together share a
 * statement and its commit, in which each claims its own, one after the other.
 */
export class BatchedPops implements Pick<Store, "pop" | "giveBack"> {
  readonly #store: PopStore;
  readonly #batcher: Batcher<Pop, PopResult>;

  /** Puts it together. */
  constructor({ store, clock, limits = POP_LIMITS }: BatchedPopsOptions) {
    this.#store = store;
    this.#batcher = new Batcher({
      run: async (pops) => {
        const { tenant, query } = pops[0]!;
        if (pops.length === 1) return [await store.pop(tenant, query)];
        return withoutStaleHints(await store.popTogether(tenant, pops.map(({ query }) => query)));
      },
      laneOf: ({ tenant, query: { queue, consumerGroup = QUEUE_MODE } }) =>
        JSON.stringify([tenant, queue, consumerGroup]),
      sizeOf: ({ query: { batch } }) => ({ items: batch, characters: 0 }),
      limits,
      clock,
    });
  }

  pop(tenant: TenantId, query: PopQuery): Promise<PopResult> {
    return this.#batcher.call({ tenant, query });
  }

  giveBack(tenant: TenantId, leaseId: string): ReturnType<Store["giveBack"]> {
    return this.#store.giveBack(tenant, leaseId);
  }
}

/** What a pop says can be taken besides is stale where a later one of its statement has claimed it. */
function withoutStaleHints(results: readonly PopResult[]): PopResult[] {
  const claimed = new Set<string>();
  const isFree = ({ partition }: PartitionName) => !claimed.has(partition);
  return [...results].reverse().map((result) => {
    const { batch, others = [], more, left = [], delayed = [] } = result;
    const fresh = {
      ...result,
      more: more !== undefined && isFree(more) ? more : undefined,
      left: left.filter(isFree),
      delayed: delayed.filter(isFree),
    };
    for (const { partition } of batch === undefined ? others : [batch, ...others]) {
      claimed.add(partition);
    }
    return fresh;
  }).reverse();
}
