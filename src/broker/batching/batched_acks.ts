import type { Clock } from "../../mesh/runtime.ts";
import type { Ack, AckResult, Store, TenantId } from "../store/store.ts";
import { QUEUE_MODE } from "../waker.ts";
import { Batcher, type BatchLimits } from "./batcher.ts";

/** What {@linkcode BatchedAcks} are made of. */
export interface BatchedAcksOptions {
  /** Where the messages are. */
  readonly store: Pick<Store, "ack">;
  /** Time. */
  readonly clock: Pick<Clock, "now">;
  /** How large statements become; as {@linkcode ACK_LIMITS} where it is left out. */
  readonly limits?: BatchLimits;
}

/** How large the statements of acks become. */
export const ACK_LIMITS: BatchLimits = {
  statementsMax: 4,
  callsMax: 32,
  itemsMax: 1000,
  charactersMax: 4 * 1024 * 1024,
};

interface AckCall {
  readonly tenant: TenantId;
  readonly acks: readonly Ack[];
}

/**
 * Acknowledges as the store does; calls of one tenant that arrive together share a statement and its
 * commit, if they are of different partitions or groups: the acks of one statement are judged together,
 * cursor by cursor.
 *
 * What became available by a statement is told once, to the first of its callers.
 */
export class BatchedAcks implements Pick<Store, "ack"> {
  readonly #batcher: Batcher<AckCall, AckResult>;

  /** Puts it together. */
  constructor({ store, clock, limits = ACK_LIMITS }: BatchedAcksOptions) {
    this.#batcher = new Batcher({
      run: async (calls) => {
        const { tenant } = calls[0]!;
        return share(calls, await store.ack(tenant, calls.flatMap(({ acks }) => acks)));
      },
      laneOf: ({ tenant }) => tenant,
      sizeOf: ({ acks }) => ({
        items: acks.length,
        characters: acks.reduce((sum, { error = "" }) => sum + error.length, 0),
      }),
      keysOf: ({ acks }) => acks.map(cursorOf),
      limits,
      clock,
    });
  }

  ack(tenant: TenantId, acks: readonly Ack[]): Promise<AckResult> {
    return this.#batcher.call({ tenant, acks });
  }
}

function share(calls: readonly AckCall[], result: AckResult): AckResult[] {
  let start = 0;
  return calls.map(({ acks }, i) => {
    const outcomes = result.outcomes.slice(start, start += acks.length);
    return i === 0 ? { ...result, outcomes } : { outcomes, available: [], delayed: [] };
  });
}

/** What names the cursor of an ack, whose partition may be written in capitals. */
function cursorOf({ partitionId, consumerGroup = QUEUE_MODE }: Ack): string {
  return JSON.stringify([partitionId.toLowerCase(), consumerGroup]);
}
