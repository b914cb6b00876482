import type { Logger } from "../mesh/runtime.ts";
import type { ConfigCache } from "./config_cache.ts";
import { type Payloads, SealedPayloadError } from "./payloads.ts";
import { refusalOf } from "./sealing_pushes.ts";
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
  /** Says which queues are encrypted. */
  readonly configs: Pick<ConfigCache, "get">;
  /** Opens payloads. */
  readonly payloads: Payloads;
  /** Where it is reported that one cannot be opened. */
  readonly logger: Logger;
}

/** Claims batches as the store does, and opens what is encrypted in them. */
export class OpeningPops implements Pick<Store, "pop" | "giveBack"> {
  readonly #store: Pick<Store, "pop" | "giveBack">;
  readonly #configs: Pick<ConfigCache, "get">;
  readonly #payloads: Payloads;
  readonly #logger: Logger;

  /** Puts it together. */
  constructor({ store, configs, payloads, logger }: OpeningPopsOptions) {
    this.#store = store;
    this.#configs = configs;
    this.#payloads = payloads;
    this.#logger = logger;
  }

  /**
   * Claims batches. One in which a message cannot be opened is given back, or with autoAck lost to its
   * group, and left out.
   *
   * @throws {SealedPayloadError} Where nothing is left.
   */
  async pop(tenant: TenantId, query: PopQuery): Promise<PopResult> {
    if (query.autoAck && !this.#payloads.hasKey) await this.#requireClear(tenant, query.queue);
    const result = await this.#store.pop(tenant, query);
    const { batch: first, others = [] } = result;
    if (first === undefined) return result;
    const claimed = [first, ...others];
    if (!claimed.some(isSealed)) return result;
    const opened: PoppedBatch[] = [];
    let failure: SealedPayloadError | undefined;
    for (const batch of claimed) {
      try {
        opened.push(await this.#open(batch));
      } catch (error) {
        if (!(error instanceof SealedPayloadError)) throw error;
        failure = error;
        await this.#refuse(tenant, query, { batch, error });
      }
    }
    const [batch, ...rest] = opened;
    if (batch === undefined) throw failure;
    return { ...result, batch, others: rest };
  }

  /** What is completed as it is claimed cannot be given back: it had better not be claimed. */
  async #requireClear(tenant: TenantId, queue: string): Promise<void> {
    const facts = await this.#configs.get({ tenant, queue });
    if (facts?.encryptionEnabled) throw new SealedPayloadError(refusalOf(queue));
  }

  async #refuse(
    tenant: TenantId,
    { queue, autoAck }: PopQuery,
    { batch, error }: { readonly batch: PoppedBatch; readonly error: SealedPayloadError },
  ): Promise<void> {
    const { partition, leaseId } = batch;
    this.#logger.error("A batch could not be opened", { tenant, queue, partition, autoAck, error });
    // Nobody is woken for it: the next one would fare no better.
    if (leaseId !== undefined) await this.#store.giveBack(tenant, leaseId);
  }

  async giveBack(tenant: TenantId, leaseId: string): Promise<PartitionName | undefined> {
    return await this.#store.giveBack(tenant, leaseId);
  }

  async #open(batch: PoppedBatch): Promise<PoppedBatch> {
    if (!isSealed(batch)) return batch;
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

function isSealed({ messages }: PoppedBatch): boolean {
  return messages.some(({ encrypted }) => encrypted);
}
