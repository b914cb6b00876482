import type { Logger } from "../mesh/runtime.ts";
import { type Payloads, SealedPayloadError } from "./payloads.ts";
import type {
  PartitionName,
  PoppedBatch,
  PoppedMessage,
  PopQuery,
  PopResult,
  Store,
  TenantId,
} from "./store/store.ts";

/** What {@linkcode OpeningPops} are made of. */
export interface OpeningPopsOptions {
  /** Where the messages are. */
  readonly store: Pick<Store, "pop" | "giveBack">;
  /** Opens payloads. */
  readonly payloads: Payloads;
  /** Where it is reported that one cannot be opened. */
  readonly logger: Logger;
}

/** Claims batches as the store does, and opens what is encrypted in them. */
export class OpeningPops implements Pick<Store, "pop" | "giveBack"> {
  readonly #store: Pick<Store, "pop" | "giveBack">;
  readonly #payloads: Payloads;
  readonly #logger: Logger;

  /** Puts it together. */
  constructor({ store, payloads, logger }: OpeningPopsOptions) {
    this.#store = store;
    this.#payloads = payloads;
    this.#logger = logger;
  }

  /**
   * Claims a batch.
   *
   * @throws {SealedPayloadError} Where a message in it cannot be opened. The batch has been given back
   * then, or with autoAck is lost to its group.
   */
  async pop(tenant: TenantId, query: PopQuery): Promise<PopResult> {
    const result = await this.#store.pop(tenant, query);
    const { batch } = result;
    if (batch === undefined || !batch.messages.some(({ encrypted }) => encrypted)) return result;
    try {
      return { ...result, batch: await this.#openBatch(batch) };
    } catch (error) {
      if (!(error instanceof SealedPayloadError)) throw error;
      const { partition, leaseId } = batch;
      const { queue, autoAck } = query;
      this.#logger.error("A batch could not be opened", {
        tenant,
        queue,
        partition,
        autoAck,
        error,
      });
      // Nobody is woken for it: the next one would fare no better.
      if (leaseId !== undefined) await this.#store.giveBack(tenant, leaseId);
      throw error;
    }
  }

  async giveBack(tenant: TenantId, leaseId: string): Promise<PartitionName | undefined> {
    return await this.#store.giveBack(tenant, leaseId);
  }

  async #openBatch(batch: PoppedBatch): Promise<PoppedBatch> {
    const messages: PoppedMessage[] = [];
    for (const message of batch.messages) {
      messages.push(
        message.encrypted
          ? { ...message, payload: await this.#payloads.open(message.payload), encrypted: false }
          : message,
      );
    }
    return { ...batch, messages };
  }
}
