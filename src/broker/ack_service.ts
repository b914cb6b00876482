import type { DelayedWakes } from "./delayed_wakes.ts";
import type { Ack, AckOutcome, AckResult, GroupPartition, Store, TenantId } from "./store/store.ts";
import { QUEUE_MODE } from "./waker.ts";
import type { Wakes } from "./wakes.ts";

/** What an {@linkcode AckService} is made of. */
export interface AckServiceOptions {
  /** Where the messages are. */
  readonly store: Pick<Store, "ack">;
  /** Where to announce what becomes available. */
  readonly wakes: Wakes;
  /** Where to announce what becomes available later. */
  readonly delayedWakes: DelayedWakes;
}

/** Acknowledges messages, and announces the partitions that become free with messages left in them. */
export class AckService {
  readonly #store: Pick<Store, "ack">;
  readonly #wakes: Wakes;
  readonly #delayedWakes: DelayedWakes;

  /** Puts it together. */
  constructor({ store, wakes, delayedWakes }: AckServiceOptions) {
    this.#store = store;
    this.#wakes = wakes;
    this.#delayedWakes = delayedWakes;
  }

  /** Applies acks in one transaction; resolves to one outcome for each. */
  async ack(tenant: TenantId, acks: readonly Ack[]): Promise<readonly AckOutcome[]> {
    if (acks.length === 0) return [];
    const result = await this.#store.ack(tenant, acks);
    this.announce(tenant, result);
    return result.outcomes;
  }

  /** Announces, each to its own group, what acks that were committed have made available. */
  announce(tenant: TenantId, { available, delayed = [] }: Omit<AckResult, "outcomes">): void {
    for (const [group, partitions] of byGroup(available)) {
      this.#wakes.announce(tenant, partitions, { group });
    }
    for (const [group, partitions] of byGroup(delayed)) {
      this.#delayedWakes.announce(tenant, partitions, { group });
    }
  }
}

function byGroup<Partition extends GroupPartition>(
  partitions: readonly Partition[],
): ReadonlyMap<string, Partition[]> {
  const groups = new Map<string, Partition[]>();
  for (const partition of partitions) {
    const { consumerGroup = QUEUE_MODE } = partition;
    const group = groups.get(consumerGroup);
    if (group === undefined) groups.set(consumerGroup, [partition]);
    else group.push(partition);
  }
  return groups;
}
