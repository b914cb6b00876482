import type { Random } from "../mesh/runtime.ts";
import type { AckService } from "./ack_service.ts";
import type { PushDraft } from "./push_service.ts";
import type { Spooler } from "./spooler.ts";
import type {
  Ack,
  AckOutcome,
  PushItem,
  PushOutcome,
  Store,
  TenantId,
  TransactionResult,
} from "./store/store.ts";
import { randomUuids } from "./uuid.ts";
import type { Wakes } from "./wakes.ts";

/** One thing that a transaction does. */
export type Operation =
  | { readonly type: "push"; readonly draft: PushDraft }
  | { readonly type: "ack"; readonly ack: Ack };

/** What became of one {@linkcode Operation}, or would have become of it. */
export type OperationOutcome =
  | {
    readonly type: "push";
    /** What was, or would have been, stored. */
    readonly item: PushItem;
    /** Undefined where it did not come to it. */
    readonly outcome: PushOutcome | undefined;
  }
  | {
    readonly type: "ack";
    /** The ack. */
    readonly ack: Ack;
    /** Undefined where it did not come to it. */
    readonly outcome: AckOutcome | undefined;
  };

/** What a transaction did. */
export interface TransactionReceipt {
  /** Names the transaction. */
  readonly transactionId: string;
  /** Whether all of it happened; else none of it did. */
  readonly isCommitted: boolean;
  /** Why nothing happened. */
  readonly error?: string;
  /** One for each operation, in their order. */
  readonly outcomes: readonly OperationOutcome[];
}

/** What a {@linkcode TransactionService} is made of. */
export interface TransactionServiceOptions {
  /** Where the messages are. */
  readonly store: Pick<Store, "transaction">;
  /** Says which pushes may not go to PostgreSQL now. */
  readonly spooler: Pick<Spooler, "mustSpool">;
  /** Where to announce messages. */
  readonly wakes: Wakes;
  /** Announces what acks make available. */
  readonly acks: Pick<AckService, "announce">;
  /** For ids. */
  readonly random: Random;
}

/** Runs transactions, and announces what they have made available. */
export class TransactionService {
  readonly #options: TransactionServiceOptions;

  /** Puts it together. */
  constructor(options: TransactionServiceOptions) {
    this.#options = options;
  }

  /**
   * Does all of it or nothing. A transaction is never spooled: what may not be pushed to PostgreSQL now,
   * under maintenance or behind spooled messages of its partition, is refused.
   *
   * Rejects with {@linkcode StoreUnavailableError} where PostgreSQL is away or leaves the outcome open.
   */
  async run(
    tenant: TenantId,
    operations: readonly Operation[],
    { requiredLeases }: { readonly requiredLeases: readonly string[] },
  ): Promise<TransactionReceipt> {
    const { store, wakes, acks: ackService, random } = this.#options;
    const [transactionId, ...ids] = randomUuids(operations.length + 1, random);
    const items: PushItem[] = [];
    const acks: Ack[] = [];
    operations.forEach((operation, i) => {
      if (operation.type === "push") items.push(toItem(operation.draft, ids[i]!));
      else acks.push(operation.ack);
    });
    const result = await this.#refusal(tenant, items) ??
      await store.transaction(tenant, { items, acks, requiredLeases });
    const { isCommitted, error, pushed, acked } = result;
    if (isCommitted) {
      wakes.announce(tenant, pushed?.touched ?? []);
      if (acked !== undefined) ackService.announce(tenant, acked);
    }
    let pushes = 0;
    let acknowledged = 0;
    const outcomes = operations.map((operation): OperationOutcome => {
      if (operation.type === "push") {
        const index = pushes++;
        return { type: "push", item: items[index]!, outcome: pushed?.outcomes[index] };
      }
      const outcome = acked?.outcomes[acknowledged++];
      return { type: "ack", ack: operation.ack, outcome };
    });
    const receipt = { transactionId: transactionId!, isCommitted, outcomes };
    return error === undefined ? receipt : { ...receipt, error };
  }

  async #refusal(
    tenant: TenantId,
    items: readonly PushItem[],
  ): Promise<TransactionResult | undefined> {
    if (items.length === 0) return undefined;
    const mustSpool = await this.#options.spooler.mustSpool(tenant, items);
    const item = items.find(mustSpool);
    if (item === undefined) return undefined;
    const error = "a transaction cannot push now: under maintenance, or until the disk spool has " +
      `drained, messages of the queue ${JSON.stringify(item.queue)} are spooled; try again later`;
    return { isCommitted: false, error, pushed: undefined, acked: undefined };
  }
}

function toItem({ queue, partition, transactionId, payload }: PushDraft, messageId: string) {
  return { queue, partition, payload, messageId, transactionId: transactionId ?? messageId };
}
