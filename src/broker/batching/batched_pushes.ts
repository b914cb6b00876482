import type { Clock } from "../../mesh/runtime.ts";
import type {
  PartitionName,
  PushItem,
  PushResult,
  Store,
  TenantId,
  TouchedPartition,
} from "../store/store.ts";
import { Batcher, type BatchLimits } from "./batcher.ts";

/** What {@linkcode BatchedPushes} are made of. */
export interface BatchedPushesOptions {
  /** Where the messages go. */
  readonly store: Pick<Store, "push">;
  /** Time. */
  readonly clock: Pick<Clock, "now">;
  /** How large statements become; as {@linkcode PUSH_LIMITS} where it is left out. */
  readonly limits?: BatchLimits;
}

/** How large the statements of pushes become. */
export const PUSH_LIMITS: BatchLimits = {
  statementsMax: 4,
  callsMax: 1000,
  itemsMax: 1000,
  charactersMax: 4 * 1024 * 1024,
};

interface Push {
  readonly tenant: TenantId;
  readonly items: readonly PushItem[];
}

/**
 * Stores messages as the store does; pushes of one tenant that arrive together share a statement and
 * its commit. In each partition the messages are in the order in which they came.
 */
export class BatchedPushes implements Pick<Store, "push"> {
  readonly #batcher: Batcher<Push, PushResult>;

  /** Puts it together. */
  constructor({ store, clock, limits = PUSH_LIMITS }: BatchedPushesOptions) {
    this.#batcher = new Batcher({
      run: async (pushes) => {
        const { tenant, items } = pushes[0]!;
        if (pushes.length === 1) return [await store.push(tenant, items)];
        return share(pushes, await store.push(tenant, pushes.flatMap(({ items }) => items)));
      },
      laneOf: ({ tenant }) => tenant,
      sizeOf: ({ items }) => ({
        items: items.length,
        characters: items.reduce((sum, { payload }) => sum + payload.length, 0),
      }),
      limits,
      clock,
    });
  }

  push(tenant: TenantId, items: readonly PushItem[]): Promise<PushResult> {
    return this.#batcher.call({ tenant, items });
  }
}

/** Each push's own part of what became of all. */
function share(pushes: readonly Push[], { outcomes, touched }: PushResult): PushResult[] {
  const touchedByKey = new Map(touched.map((partition) => [keyOf(partition), partition]));
  let start = 0;
  return pushes.map(({ items }) => {
    const own = outcomes.slice(start, start += items.length);
    const ownTouched = new Map<string, TouchedPartition>();
    const misjudged = new Set<string>();
    own.forEach(({ status }, i) => {
      const item = items[i]!;
      // Another push may have assumed of the same queue what is right.
      if (status === "failed") misjudged.add(item.queue);
      if (status !== "queued") return;
      const key = keyOf(item);
      const partition = touchedByKey.get(key);
      if (partition !== undefined) ownTouched.set(key, partition);
    });
    return {
      outcomes: own,
      touched: [...ownTouched.values()],
      ...(misjudged.size === 0 ? {} : { misjudged: [...misjudged] }),
    };
  });
}

function keyOf({ queue, partition }: PartitionName): string {
  return JSON.stringify([queue, partition]);
}
