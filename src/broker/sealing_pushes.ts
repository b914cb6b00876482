import type { ConfigCache } from "./config_cache.ts";
import { NO_KEY, type Payloads } from "./payloads.ts";
import {
  type PartitionName,
  type PushItem,
  type PushOutcome,
  type PushResult,
  type Store,
  StoreUnavailableError,
  type TenantId,
} from "./store/store.ts";

/** How often a push is tried whose queue is switched to and fro meanwhile. */
const ATTEMPTS_MAX = 5;

/** What {@linkcode SealingPushes} are made of. */
export interface SealingPushesOptions {
  /** Where the messages go. */
  readonly store: Pick<Store, "push">;
  /** Says which queues are encrypted. */
  readonly configs: ConfigCache;
  /** Seals. */
  readonly payloads: Payloads;
}

/** An item, and its place in the push. */
interface Placed {
  readonly index: number;
  readonly item: PushItem;
}

/**
 * Stores messages as the store does, sealed where their queue is encrypted. What this replica knows of
 * the queue can be old: PostgreSQL judges, and what was misjudged is sealed, or not, and stored again.
 * So nothing is ever stored in the clear against the queue's word.
 */
export class SealingPushes implements Pick<Store, "push"> {
  readonly #store: Pick<Store, "push">;
  readonly #configs: ConfigCache;
  readonly #payloads: Payloads;

  /** Puts it together. */
  constructor({ store, configs, payloads }: SealingPushesOptions) {
    this.#store = store;
    this.#configs = configs;
    this.#payloads = payloads;
  }

  async push(tenant: TenantId, items: readonly PushItem[]): Promise<PushResult> {
    const outcomes = new Array<PushOutcome>(items.length);
    const touched: PartitionName[] = [];
    let left: readonly Placed[] = items.map((item, index) => ({ item, index }));
    for (let attempt = 1; left.length > 0; attempt++) {
      if (attempt > ATTEMPTS_MAX) {
        throw new StoreUnavailableError("the encryption of a queue keeps changing");
      }
      const sealed = await this.#seal(tenant, left, outcomes);
      const result = sealed.length === 0
        ? { outcomes: [], touched: [] }
        : await this.#store.push(tenant, sealed.map(({ item }) => item));
      const misjudged = new Set(result.misjudged);
      sealed.forEach(({ index, item }, i) => {
        if (!misjudged.has(item.queue)) outcomes[index] = result.outcomes[i]!;
      });
      touched.push(...result.touched);
      for (const queue of misjudged) this.#configs.drop(tenant, queue);
      left = left.filter(({ item }) => misjudged.has(item.queue));
    }
    return { outcomes, touched };
  }

  /** What can be stored, sealed where its queue is encrypted. What cannot be is marked as failed. */
  async #seal(
    tenant: TenantId,
    placed: readonly Placed[],
    outcomes: PushOutcome[],
  ): Promise<readonly Placed[]> {
    const encrypted = await this.#encryptedAmong(tenant, placed.map(({ item }) => item.queue));
    if (encrypted.size === 0) return placed;
    const sealed: Placed[] = [];
    for (const { index, item } of placed) {
      if (!encrypted.has(item.queue)) {
        sealed.push({ index, item });
      } else if (this.#payloads.hasKey) {
        const payload = await this.#payloads.seal(item.payload);
        sealed.push({ index, item: { ...item, payload, encrypted: true } });
      } else {
        const { messageId, queue } = item;
        outcomes[index] = { status: "failed", messageId, error: refusalOf(queue) };
      }
    }
    return sealed;
  }

  async #encryptedAmong(tenant: TenantId, queues: readonly string[]): Promise<Set<string>> {
    const encrypted = new Set<string>();
    await Promise.all([...new Set(queues)].map(async (queue) => {
      // A queue that is not there yet is made by the push, without encryption.
      const facts = await this.#configs.get({ tenant, queue });
      if (facts?.encryptionEnabled) encrypted.add(queue);
    }));
    return encrypted;
  }
}

/** Why an encrypted queue takes nothing without a key. */
export function refusalOf(queue: string): string {
  return `the queue "${queue}" is encrypted, and ${NO_KEY}`;
}
