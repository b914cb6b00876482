/**
 * What goes into a queue, and what becomes of it.
 *
 * @module
 */

import type { TenantId, TenantPartition, TouchedPartition } from "./names.ts";

/** One message on its way into a partition. */
export interface PushItem {
  /** The queue; it is made with the defaults where it does not exist. */
  readonly queue: string;
  /** The partition; it is made where it does not exist. */
  readonly partition: string;
  /** A UUID, given before the first attempt: one of unknown outcome can be repeated with it. */
  readonly messageId: string;
  /** The producer's name for the message, or one made for it. */
  readonly transactionId: string;
  /** The payload as the producer's own JSON text, kept to the byte, or what it was encrypted to. */
  readonly payload: string;
  /**
   * Whether the payload has been encrypted; false where it is left out. Where the queue says
   * otherwise the item is not stored.
   */
  readonly encrypted?: boolean;
}

/** A message that waited in a disk spool. */
export interface SpooledItem extends PushItem {
  /** Whose it is. */
  readonly tenant: TenantId;
  /** When it was accepted, in milliseconds since 1970: the time that counts for duplicates. */
  readonly acceptedAt: number;
}

/** Messages that follow each other in a spool. */
export interface SpooledBatch {
  /** Names the spool. */
  readonly spoolId: string;
  /** The position that must be stored for it before, 0 for none. */
  readonly after: number;
  /** The position to store with them. */
  readonly position: number;
  /** In the order in which they were accepted; none where one is passed over. */
  readonly items: readonly SpooledItem[];
}

/** What storing a {@linkcode SpooledBatch} did. */
export interface SpooledResult {
  /** The position that is stored for the spool now. Another than the batch's: nothing was stored. */
  readonly position: number;
  /** Nothing was stored, since a queue's encryption is not what the items assumed. */
  readonly isMisjudged: boolean;
  /** As for a push. */
  readonly touched: readonly TenantPartition[];
}

/** What became of one {@linkcode PushItem}. */
export interface PushOutcome {
  /** `failed` says why in `error`. */
  readonly status: "queued" | "duplicate" | "failed";
  /** The id that was stored: for a duplicate, that of the first one. */
  readonly messageId: string;
  /** Why it failed. */
  readonly error?: string;
}

/** What a push did. */
export interface PushResult {
  /** One for each item, in the order of the items. */
  readonly outcomes: readonly PushOutcome[];
  /**
   * The distinct partitions that something was stored in, those left out that had something waiting
   * for its time already.
   */
  readonly touched: readonly TouchedPartition[];
  /** The queues whose encryption is not what the items assumed: those items are `failed`. */
  readonly misjudged?: readonly string[];
}
