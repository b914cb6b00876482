import type { Random } from "../mesh/runtime.ts";
import type { PushOutcome, Store, TenantId } from "./store/store.ts";
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
export interface PushReceipt extends PushOutcome {
  /** The name by which it is acknowledged. */
  readonly transactionId: string;
}

/** What a {@linkcode PushService} is made of. */
export interface PushServiceOptions {
  /** Where the messages go. */
  readonly store: Store;
  /** Where to announce them. */
  readonly wakes: Wakes;
  /** For ids. */
  readonly random: Random;
}

/** Stores messages and announces them. */
export class PushService {
  readonly #store: Store;
  readonly #wakes: Wakes;
  readonly #random: Random;

  /** Puts it together. */
  constructor({ store, wakes, random }: PushServiceOptions) {
    this.#store = store;
    this.#wakes = wakes;
    this.#random = random;
  }

  /**
   * Stores messages and, once they are committed, wakes whoever waits for them here and elsewhere.
   * Where nothing new was stored, nobody is woken.
   */
  async push(tenant: TenantId, drafts: readonly PushDraft[]): Promise<PushReceipt[]> {
    if (drafts.length === 0) return [];
    const ids = randomUuids(drafts.length, this.#random);
    const items = drafts.map((draft, i) => {
      const messageId = ids[i]!;
      return { ...draft, messageId, transactionId: draft.transactionId ?? messageId };
    });
    const { outcomes, touched } = await this.#store.push(tenant, items);
    this.#wakes.announce(tenant, touched);
    return outcomes.map((outcome, i) => ({ ...outcome, transactionId: items[i]!.transactionId }));
  }
}
