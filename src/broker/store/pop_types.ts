/**
 * What a pop asks for, and what it finds.
 *
 * @module
 */

import type { DelayedPartition, PartitionName } from "./names.ts";

/**
 * From where a consumer group starts: behind all that is there, at the beginning, or behind a point
 * in time, in RFC 3339.
 */
export type SubscriptionStart = "new" | "all" | { readonly at: string };

/** What a pop asks for. */
export interface PopQuery {
  /** The queue; it is made with the defaults where it does not exist. */
  readonly queue: string;
  /** One partition alone; any where it is left out. */
  readonly partition?: string;
  /**
   * Partitions to try first, in this order, where any will do. They only speed up: where none of them
   * holds anything, the others are looked through as they are without.
   */
  readonly candidates?: readonly string[];
  /** The consumer group; queue mode where it is left out. */
  readonly consumerGroup?: string;
  /** From where the group starts if this is its first pop; `new` where it is left out. */
  readonly start?: SubscriptionStart;
  /** When the pop arrived, by the runtime's clock; now where it is left out. */
  readonly arrivedAt?: number;
  /** At most so many partitions are claimed, each by a lease of its own; one by default. */
  readonly partitions?: number;
  /** At most this many messages, of all partitions together. */
  readonly batch: number;
  /** At most this many bytes of payload, but never less than one message; no bound by default. */
  readonly bytesMax?: number;
  /** Overrides the queue's lease time. */
  readonly leaseSeconds?: number;
  /** Completes the batch as it is given out (at most once). */
  readonly autoAck: boolean;
}

/** One delivered message. */
export interface PoppedMessage {
  /** The id given at the push. */
  readonly id: string;
  /** The producer's name for it. */
  readonly transactionId: string;
  /** The producer's own JSON text. */
  readonly payload: string;
  /** When it was stored, by PostgreSQL's clock: RFC 3339 in UTC. */
  readonly createdAt: string;
  /** Whether the payload is what the message was encrypted to; false where it is left out. */
  readonly encrypted?: boolean;
}

/** A batch of one partition, leased to one pop. */
export interface PoppedBatch {
  /** The partition's name. */
  readonly partition: string;
  /** The partition's id, by which it is acknowledged. */
  readonly partitionId: string;
  /** The lease; absent with `autoAck`. */
  readonly leaseId?: string;
  /** In number order, at least one. */
  readonly messages: readonly PoppedMessage[];
}

/** What a pop found. */
export interface PopResult {
  /** The batch, or undefined where nothing could be taken. */
  readonly batch: PoppedBatch | undefined;
  /** The batches of the other partitions that it claimed. */
  readonly others?: readonly PoppedBatch[];
  /** Another partition that this pop could have taken from, for whoever waits next. */
  readonly more: PartitionName | undefined;
  /** Those of the claimed partitions that can be taken from again at once: `autoAck` left something. */
  readonly left?: readonly PartitionName[];
  /** Those of the claimed partitions of which `autoAck` left something that can be taken later. */
  readonly delayed?: readonly DelayedPartition[];
}

/** Which queues a pop looks through that names none. */
export interface DiscoveryFilter {
  /** Their namespace; any where it is left out. */
  readonly namespace?: string;
  /** Their task; any where it is left out. */
  readonly task?: string;
  /** The consumer group that looks; queue mode where it is left out. */
  readonly consumerGroup?: string;
}

/** A queue that matches a {@linkcode DiscoveryFilter}. */
export interface DiscoveredQueue {
  /** Its name. */
  readonly queue: string;
  /** Whether it may hold something for the group, or does not know the group yet. */
  readonly isWorthAPop: boolean;
}
