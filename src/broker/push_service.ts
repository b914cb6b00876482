import type { Random } from "../mesh/runtime.ts";
import type { Spooler, SpoolOutcome } from "./spooler.ts";
import {
  type PushItem,
  type PushOutcome,
  type Store,
  StoreUnavailableError,
  type TenantId,
} from "./store/store.ts";
import { randomUuids } from "./uuid.ts";
import type { Wakes } from "./wakes.ts";

/** One message as a producer sends it. */
export interface PushDraft {
  /** The queue. */
  readonly queue: string;
  /** The partition. */
  readonly partition: string;
  /** The producer's name for it; the message id where it gives none. */
  readonly transactionId: string | undefined;
  /** The producer's own JSON text. */
  readonly payload: string;
}

/** What became of one {@linkcode PushDraft}. */
export interface PushReceipt extends Omit<PushOutcome, "status"> {
  /** As the store says it, or `buffered` where it waits in the spool. */
  readonly status: PushOutcome["status"] | "buffered";
  /** The name by which it is acknowledged. */
  readonly transactionId: string;
}

/** What a {@linkcode PushService} is made of. */
export interface PushServiceOptions {
  /** Where the messages go. */
  readonly store: Pick<Store, "push">;
  /** Where they go that the store cannot take; nowhere, where it is left out. */
  readonly spooler?: Pick<Spooler, "isOpen" | "mustSpool" | "append">;
  /** Where to announce them. */
  readonly wakes: Wakes;
  /** For ids. */
  readonly random: Random;
}

/** Stores messages and announces them, or spools them where they cannot be stored now. */
export class PushService {
  readonly #store: Pick<Store, "push">;
  readonly #spooler: Pick<Spooler, "isOpen" | "mustSpool" | "append"> | undefined;
  readonly #wakes: Wakes;
  readonly #random: Random;

  /** Puts it together. */
  constructor({ store, spooler, wakes, random }: PushServiceOptions) {
    this.#store = store;
    this.#spooler = spooler;
    this.#wakes = wakes;
    this.#random = random;
  }

  /**
   * Stores messages and, once they are committed, wakes whoever waits for them here and elsewhere.
   * Where nothing new was stored, nobody is woken.
   *
   * Under maintenance, behind spooled messages of their partition, and where PostgreSQL is away or
   * leaves open what became of them, they are spooled under the same ids.
   *
   * @throws {SpoolUnavailableError} where the spool is needed and does not take them.
   * @throws {StoreUnavailableError} where PostgreSQL is away and they may not be spooled.
   */
  async push(tenant: TenantId, drafts: readonly PushDraft[]): Promise<PushReceipt[]> {
    if (drafts.length === 0) return [];
    const ids = randomUuids(drafts.length, this.#random);
    const items = drafts.map((draft, i) => {
      const messageId = ids[i]!;
      return { ...draft, messageId, transactionId: draft.transactionId ?? messageId };
    });
    const outcomes = await this.#pushOrSpool(tenant, items);
    return items.map(({ messageId, transactionId }) => ({
      ...outcomes.get(messageId)!,
      transactionId,
    }));
  }

  /** What became of each item, by the id that it was given. */
  async #pushOrSpool(
    tenant: TenantId,
    items: readonly PushItem[],
  ): Promise<Map<string, PushOutcome | SpoolOutcome>> {
    const outcomes = new Map<string, PushOutcome | SpoolOutcome>();
    const note = (items: readonly PushItem[], found: readonly (PushOutcome | SpoolOutcome)[]) =>
      items.forEach(({ messageId }, i) => outcomes.set(messageId, found[i]!));
    const mustSpool = await this.#spooler?.mustSpool(tenant, items) ?? (() => false);
    const { spooled = [], stored = [] } = group(items, mustSpool);
    // First what may be refused, while nothing of the push is stored yet.
    if (spooled.length > 0) note(spooled, await this.#spooler!.append(tenant, spooled));
    if (stored.length > 0) note(stored, await this.#storeOrSpool(tenant, stored));
    return outcomes;
  }

  async #storeOrSpool(
    tenant: TenantId,
    items: readonly PushItem[],
  ): Promise<readonly (PushOutcome | SpoolOutcome)[]> {
    try {
      const { outcomes, touched } = await this.#store.push(tenant, items);
      this.#wakes.announce(tenant, touched);
      return outcomes;
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || !this.#spooler?.isOpen) throw error;
      return await this.#spooler.append(tenant, items);
    }
  }
}

function group(items: readonly PushItem[], mustSpool: (item: PushItem) => boolean) {
  const spooled: PushItem[] = [];
  const stored: PushItem[] = [];
  for (const item of items) (mustSpool(item) ? spooled : stored).push(item);
  return { spooled, stored };
}
