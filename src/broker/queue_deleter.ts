import type { Clock, Logger } from "../mesh/runtime.ts";
import { type Store, StoreUnavailableError, type TenantId } from "./store/store.ts";

/** How long a delete goes on removing what the queue held, in milliseconds. */
export const PURGE_MS_MAX = 2000;

/** What a {@linkcode QueueDeleter} is made of. */
export interface QueueDeleterOptions {
  /** Where the queues are. */
  readonly store: Pick<Store, "deleteQueue" | "purge">;
  /** Drops what is known of a queue, here and on the peers. */
  readonly onDeleted: (tenant: TenantId, queue: string) => void;
  /** Time. */
  readonly clock: Clock;
  /** Where failures are reported that no client hears of. */
  readonly logger: Logger;
}

/** Deletes queues. */
export class QueueDeleter {
  readonly #options: QueueDeleterOptions;

  /** Puts it together. */
  constructor(options: QueueDeleterOptions) {
    this.#options = options;
  }

  /**
   * Deletes a queue. Resolves to whether there was one. From then on nothing of it can be found; what it
   * held is removed for {@linkcode PURGE_MS_MAX} at most, and the rest by a sweep.
   */
  async delete(tenant: TenantId, queue: string): Promise<boolean> {
    const { store, onDeleted } = this.#options;
    let id: string | undefined;
    try {
      id = await store.deleteQueue(tenant, queue);
    } finally {
      // Also where the outcome is unknown: to forget what still holds does no harm.
      onDeleted(tenant, queue);
    }
    if (id === undefined) return false;
    await this.#purge(id, queue);
    return true;
  }

  async #purge(id: string, queue: string): Promise<void> {
    const { store, clock, logger } = this.#options;
    const deadline = clock.now() + PURGE_MS_MAX;
    try {
      while (await store.purge(id) && clock.now() < deadline);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      logger.warn("What a deleted queue held is left to a sweep", { queue, reason: error.message });
    }
  }
}
