/**
 * What consumers say of messages, alone or in a transaction.
 *
 * @module
 */

import type { DelayedPartition, GroupPartition } from "./names.ts";
import type { PushItem, PushResult } from "./push_types.ts";

/** What a consumer says of one message. */
export interface Ack {
  /** The message's transactionId. */
  readonly transactionId: string;
  /** The partition that it came from. */
  readonly partitionId: string;
  /** `completed`, or given back: `retry` free of charge, `failed` at the charge of one try. */
  readonly status: "completed" | "retry" | "failed" | "dlq";
  /** The consumer group; queue mode where it is left out. */
  readonly consumerGroup?: string;
  /** The lease that it claims to hold. */
  readonly leaseId?: string;
  /** What the consumer says went wrong. */
  readonly error?: string;
}

/** What became of one {@linkcode Ack}. */
export interface AckOutcome {
  /** Whether it took effect, or had done so before. */
  readonly success: boolean;
  /** Why not. */
  readonly error?: string;
  /** The batch's lease ended with it. */
  readonly leaseReleased: boolean;
  /** The message was dead-lettered. */
  readonly dlq: boolean;
  /** It had been completed before; nothing moved. */
  readonly noop: boolean;
}

/** What a call of acks did. */
export interface AckResult {
  /** One for each ack, in their order. */
  readonly outcomes: readonly AckOutcome[];
  /** Partitions that became free and still hold messages for the group: someone can be woken. */
  readonly available: readonly GroupPartition[];
  /** Partitions that became free and can be taken later: someone can be woken then. */
  readonly delayed?: readonly DelayedPartition[];
}

/** Pushes and acks that happen together or not at all. */
export interface TransactionRequest {
  /** The messages to store. */
  readonly items: readonly PushItem[];
  /** The messages to acknowledge. */
  readonly acks: readonly Ack[];
  /** Leases that have to be held at the commit, beside those that the acks name. */
  readonly requiredLeases: readonly string[];
}

/** What a transaction did. */
export interface TransactionResult {
  /** Whether all of it happened; else none of it did. */
  readonly isCommitted: boolean;
  /** Why nothing happened. */
  readonly error?: string;
  /** What became of the pushes, or would have; undefined where it did not come to them. */
  readonly pushed: PushResult | undefined;
  /** What became of the acks, or would have; undefined where it did not come to them. */
  readonly acked: AckResult | undefined;
}
