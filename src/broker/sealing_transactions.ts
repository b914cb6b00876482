import type { ConfigCache } from "./config_cache.ts";
import { mapInGroups } from "./map_in_groups.ts";
import type { Payloads } from "./payloads.ts";
import { refusalOf } from "./sealing_pushes.ts";
import {
  type PushItem,
  type Store,
  StoreUnavailableError,
  type TenantId,
  type TransactionRequest,
  type TransactionResult,
} from "./store/store.ts";

/** How often a transaction is tried that pushes to a queue which is switched to and fro meanwhile. */
const ATTEMPTS_MAX = 5;

/** What {@linkcode SealingTransactions} are made of. */
export interface SealingTransactionsOptions {
  /** Where the messages go. */
  readonly store: Pick<Store, "transaction">;
  /** Says which queues are encrypted. */
  readonly configs: ConfigCache;
  /** Seals. */
  readonly payloads: Payloads;
}

/**
 * Runs transactions as the store does, with messages sealed where their queue is encrypted. PostgreSQL
 * judges: where what this replica knows of a queue is old, the transaction is rolled back and done again.
 */
export class SealingTransactions implements Pick<Store, "transaction"> {
  readonly #store: Pick<Store, "transaction">;
  readonly #configs: ConfigCache;
  readonly #payloads: Payloads;

  /** Puts it together. */
  constructor({ store, configs, payloads }: SealingTransactionsOptions) {
    this.#store = store;
    this.#configs = configs;
    this.#payloads = payloads;
  }

  async transaction(tenant: TenantId, request: TransactionRequest): Promise<TransactionResult> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const encrypted = await this.#encryptedAmong(tenant, request.items);
      const [refused] = encrypted;
      if (refused !== undefined && !this.#payloads.hasKey) {
        const error = refusalOf(refused);
        return { isCommitted: false, error, pushed: undefined, acked: undefined };
      }
      const items = await mapInGroups(
        request.items,
        async (item) =>
          encrypted.has(item.queue)
            ? { ...item, payload: await this.#payloads.seal(item.payload), encrypted: true }
            : item,
      );
      const result = await this.#store.transaction(tenant, { ...request, items });
      const misjudged = result.pushed?.misjudged ?? [];
      if (result.isCommitted || misjudged.length === 0) return result;
      for (const queue of misjudged) this.#configs.drop(tenant, queue);
    }
    throw new StoreUnavailableError("the encryption of a queue keeps changing");
  }

  async #encryptedAmong(tenant: TenantId, items: readonly PushItem[]): Promise<Set<string>> {
    const encrypted = new Set<string>();
    await Promise.all([...new Set(items.map(({ queue }) => queue))].map(async (queue) => {
      // A queue that is not there yet is made by the push, without encryption.
      const facts = await this.#configs.get({ tenant, queue });
      if (facts?.encryptionEnabled) encrypted.add(queue);
    }));
    return encrypted;
  }
}
