import type { PopQuery, PopResult, Store, TenantId } from "../store/store.ts";
import { QUEUE_MODE } from "../waker.ts";
import type { HotList } from "./hot_list.ts";

/** So many candidates go with one query: the first of them that holds something is claimed. */
export const CANDIDATES_MAX = 16;

/** What {@linkcode HotPops} are made of. */
export interface HotPopsOptions {
  /** Where the messages are. */
  readonly store: Pick<Store, "pop" | "giveBack">;
  /** Which partitions may hold something. */
  readonly hotList: HotList;
}

/** Claims batches as the store does, and lets those of a whole queue try the hot list's candidates. */
export class HotPops implements Pick<Store, "pop" | "giveBack"> {
  readonly #store: Pick<Store, "pop" | "giveBack">;
  readonly #hotList: HotList;

  /** Puts the two together. */
  constructor({ store, hotList }: HotPopsOptions) {
    this.#store = store;
    this.#hotList = hotList;
  }

  async pop(tenant: TenantId, query: PopQuery): Promise<PopResult> {
    const { queue, partition, consumerGroup: group = QUEUE_MODE } = query;
    // Nothing else is left of one partition, which needs no candidates.
    if (partition !== undefined) return await this.#store.pop(tenant, query);
    const taken = this.#hotList.take({ tenant, queue, group }, CANDIDATES_MAX);
    const { partitions: candidates } = taken;
    const result = await this.#store.pop(
      tenant,
      candidates.length === 0 ? query : { ...query, candidates },
    );
    const { batch, others = [], left = [] } = result;
    const batches = batch === undefined ? others : [batch, ...others];
    taken.settle({
      claimed: batches.map(({ partition }) => partition),
      left: left.map(({ partition }) => partition),
    });
    // Whoever is woken for what is left finds it marked.
    if (result.more !== undefined) this.#hotList.mark({ tenant, ...result.more, group });
    return result;
  }

  async giveBack(
    ...[tenant, leaseId]: Parameters<Store["giveBack"]>
  ): ReturnType<Store["giveBack"]> {
    return await this.#store.giveBack(tenant, leaseId);
  }
}
