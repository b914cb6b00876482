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
    const { queue, partition } = query;
    if (partition !== undefined) {
      return this.#noteMore(tenant, await this.#store.pop(tenant, query));
    }
    const taken = this.#hotList.take({ tenant, queue, group: QUEUE_MODE }, CANDIDATES_MAX);
    const { partitions: candidates } = taken;
    const result = await this.#store.pop(
      tenant,
      candidates.length === 0 ? query : { ...query, candidates },
    );
    const { batch, more } = result;
    const claimed = batch === undefined ? [] : [batch.partition];
    taken.settle({ claimed, left: claimed.filter((name) => name === more?.partition) });
    return this.#noteMore(tenant, result);
  }

  async giveBack(
    ...[tenant, leaseId]: Parameters<Store["giveBack"]>
  ): ReturnType<Store["giveBack"]> {
    return await this.#store.giveBack(tenant, leaseId);
  }

  /** Whoever is woken for what a pop has left finds it marked. */
  #noteMore(tenant: TenantId, result: PopResult): PopResult {
    if (result.more !== undefined) {
      this.#hotList.mark({ tenant, ...result.more, group: QUEUE_MODE });
    }
    return result;
  }
}
