import type { ConfigCache } from "./config_cache.ts";
import { NO_KEY, type Payloads } from "./payloads.ts";
import { RefusedRecordsError } from "./spool/errors.ts";
import type { SinkOutcome, SpoolBatch, SpoolSink } from "./spool/sink.ts";
import type { SpoolRecord } from "./spool/spool_record.ts";
import {
  type SpooledItem,
  type SpooledResult,
  type Store,
  StoreDataError,
  type TenantId,
  type TenantPartition,
  type TouchedPartition,
} from "./store/store.ts";
import type { Wakes } from "./wakes.ts";

/** How often a batch is tried in a row whose queues are switched to and fro meanwhile. */
const ATTEMPTS_MAX = 5;

/** What a {@linkcode StoreSink} is made of. */
export interface StoreSinkOptions {
  /** Where the messages go. */
  readonly store: Pick<Store, "storeSpooled" | "spoolPosition">;
  /** Says which queues are encrypted. */
  readonly configs: ConfigCache;
  /** Seals. */
  readonly payloads: Payloads;
  /** Where to announce what has been stored. */
  readonly wakes: Wakes;
}

/**
 * Drains spools into PostgreSQL, sealed where their queue is encrypted, and announces each batch after
 * its commit.
 */
export class StoreSink implements SpoolSink {
  readonly #options: StoreSinkOptions;

  /** Puts it together. */
  constructor(options: StoreSinkOptions) {
    this.#options = options;
  }

  async position(spoolId: string): Promise<number> {
    return await this.#options.store.spoolPosition(spoolId);
  }

  async store({ records, ...batch }: SpoolBatch): Promise<SinkOutcome> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const items = await this.#seal(records);
      const { position, isMisjudged, touched } = await this.#store({ ...batch, items });
      if (!isMisjudged) {
        this.#announce(touched);
        return { position };
      }
      // Nothing says which queue it was.
      for (const { tenant, queue } of items) this.#options.configs.drop(tenant, queue);
    }
    throw new Error("The encryption of a queue keeps changing");
  }

  async #store(batch: Parameters<Store["storeSpooled"]>[0]): Promise<SpooledResult> {
    try {
      return await this.#options.store.storeSpooled(batch);
    } catch (error) {
      if (!(error instanceof StoreDataError)) throw error;
      throw new RefusedRecordsError(error.message, { cause: error });
    }
  }

  async #seal(records: readonly SpoolRecord[]): Promise<SpooledItem[]> {
    const { configs, payloads } = this.#options;
    const items: SpooledItem[] = [];
    for (const record of records) {
      const facts = await configs.get(record);
      if (!facts?.encryptionEnabled) {
        items.push(record);
        continue;
      }
      if (!payloads.hasKey) throw new Error(`The queue "${record.queue}" is encrypted: ${NO_KEY}`);
      items.push({ ...record, payload: await payloads.seal(record.payload), encrypted: true });
    }
    return items;
  }

  #announce(touched: readonly TenantPartition[]): void {
    const byTenant = new Map<TenantId, TouchedPartition[]>();
    for (const { tenant, ...partition } of touched) {
      const partitions = byTenant.get(tenant) ?? [];
      partitions.push(partition);
      byTenant.set(tenant, partitions);
    }
    for (const [tenant, partitions] of byTenant) this.#options.wakes.announce(tenant, partitions);
  }
}
