/**
 * The names by which the store speaks of what it holds.
 *
 * @module
 */

/** A tenant: a lowercase UUID. */
export type TenantId = string;

/** A partition of a tenant's queue that something was stored in. */
export interface TenantPartition extends TouchedPartition {
  /** The tenant. */
  readonly tenant: TenantId;
}

/** A partition of a queue, by name. */
export interface PartitionName {
  /** The queue's name. */
  readonly queue: string;
  /** The partition's name. */
  readonly partition: string;
}

/** A partition that something was stored in. */
export interface TouchedPartition extends PartitionName {
  /** In how many milliseconds it can be taken; at once where it is left out. */
  readonly delayMs?: number;
}

/** A partition, and the group that can take from it. */
export interface GroupPartition extends PartitionName {
  /** The consumer group; queue mode where it is left out. */
  readonly consumerGroup?: string;
}

/** A partition with something to take that has not matured. */
export interface DelayedPartition extends GroupPartition {
  /** In how many milliseconds it can be taken. */
  readonly delayMs: number;
}

/** The group of pops that name none: queue mode. */
export const QUEUE_MODE = "__QUEUE_MODE__";
