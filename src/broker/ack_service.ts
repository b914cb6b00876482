import type { DelayedWakes } from "./delayed_wakes.ts";
import type { Ack, AckOutcome, Store, TenantId } from "./store/store.ts";
import { QUEUE_MODE } from "./waker.ts";
import type { Wakes } from "./wakes.ts";

/** What an {@linkcode AckService} is made of. */
export interface AckServiceOptions {
  /** Where the messages are. */
  readonly store: Store;
  /** Where to announce what becomes available. */
  readonly wakes: Wakes;
  /** Where to announce what becomes available later. */
  readonly delayedWakes: DelayedWakes;
}

/** Acknowledges messages, and announces the partitions that become free with messages left in them. */
export class AckService {
  readonly #store: Store;
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
    const { outcomes, available, delayed = [] } = await this.#store.ack(tenant, acks);
    this.#wakes.announce(tenant, available, { group: QUEUE_MODE });
    this.#delayedWakes.announce(tenant, delayed, { group: QUEUE_MODE });
    return outcomes;
  }
}
