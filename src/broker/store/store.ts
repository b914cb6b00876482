/**
 * What the replica asks of PostgreSQL, in its own words. Only this folder knows SQL.
 *
 * @module
 */

import type { Ack, AckResult, TransactionRequest, TransactionResult } from "./ack_types.ts";
import type {
  ConfigureRequest,
  DeadLetterPage,
  DeadLetterQuery,
  EncryptedQueue,
  FlagName,
  FlagValue,
  FlagValues,
  PoolStats,
  QueueConfig,
  QueueSettings,
  SweepPosition,
  SweepStep,
} from "./admin_types.ts";
import type { PartitionName, TenantId } from "./names.ts";
import type { DiscoveredQueue, DiscoveryFilter, PopQuery, PopResult } from "./pop_types.ts";
import type { PushItem, PushResult, SpooledBatch, SpooledResult } from "./push_types.ts";

export type * from "./ack_types.ts";
export type * from "./admin_types.ts";
export type * from "./names.ts";
export type * from "./pop_types.ts";
export type * from "./push_types.ts";

/**
 * The queues in PostgreSQL. Every call rejects with {@linkcode StoreUnavailableError} where
 * PostgreSQL cannot be reached or does not answer in time; the caller decides what that means.
 */
export interface Store {
  /** How its connections stand; left out where it has none. */
  readonly poolStats?: PoolStats;
  /** Makes a queue or changes its options. */
  configure(tenant: TenantId, request: ConfigureRequest): Promise<QueueSettings>;
  /** Stores messages, in their order within each partition, in one transaction. */
  push(tenant: TenantId, items: readonly PushItem[]): Promise<PushResult>;
  /**
   * Stores what waited in a spool and how far it has come, in one transaction, if the position that is
   * stored is the batch's `after`; else it does nothing. So it can be repeated.
   *
   * Rejects with {@linkcode StoreDataError} where the messages are at fault.
   */
  storeSpooled(batch: SpooledBatch): Promise<SpooledResult>;
  /** The position that is stored for a spool; 0 where none is. */
  spoolPosition(spoolId: string): Promise<number>;
  /** What is kept of a queue's configuration; undefined where there is no such queue. */
  queueConfig(tenant: TenantId, queue: string): Promise<QueueConfig | undefined>;
  /** The encrypted queues of all tenants, at most `countMax`. */
  encryptedQueues(countMax: number): Promise<readonly EncryptedQueue[]>;
  /** Reads all maintenance flags. */
  readFlags(): Promise<FlagValues>;
  /** Writes a maintenance flag and raises its version. */
  writeFlag(name: FlagName, enabled: boolean): Promise<FlagValue>;
  /** Claims a batch for one pop. */
  pop(tenant: TenantId, query: PopQuery): Promise<PopResult>;
  /**
   * Claims for one pop after the other, in one transaction; resolves to one result for each. All of them
   * are of one queue and one group.
   */
  popTogether(tenant: TenantId, queries: readonly PopQuery[]): Promise<readonly PopResult[]>;
  /** Does of a pop only that its queue is made and its group recorded, where they are not there yet. */
  beginGroup(tenant: TenantId, query: PopQuery): Promise<void>;
  /** Acknowledges or gives back, in one transaction. */
  ack(tenant: TenantId, acks: readonly Ack[]): Promise<AckResult>;
  /**
   * Gives a claimed batch back free of charge, where its reply could not be delivered. Resolves to
   * the partition if that made it available.
   */
  giveBack(tenant: TenantId, leaseId: string): Promise<PartitionName | undefined>;
  /** The queues that match, those first whose messages have waited longest. */
  discover(tenant: TenantId, filter: DiscoveryFilter): Promise<readonly DiscoveredQueue[]>;
  /**
   * Makes a lease last for `seconds` from now on, never shorter than it was. Resolves to when it runs
   * out then, RFC 3339 in UTC, or to undefined where it is unknown or has run out.
   */
  extendLease(tenant: TenantId, leaseId: string, seconds: number): Promise<string | undefined>;
  /**
   * The partitions that a group can take from now, those that have waited longest first, and at most
   * `countMax`. Nothing has to hold of them by the time that they are told.
   */
  loadCandidates(
    tenant: TenantId,
    key: { readonly queue: string; readonly group: string },
    countMax: number,
  ): Promise<readonly string[]>;
  /**
   * Pushes and acknowledges in one transaction, which is rolled back where an ack fails or a required
   * lease is not held. To repeat it with the same items stores nothing twice.
   */
  transaction(tenant: TenantId, request: TransactionRequest): Promise<TransactionResult>;
  /** Finds dead letters; undefined where there is no such queue. */
  deadLetters(tenant: TenantId, query: DeadLetterQuery): Promise<DeadLetterPage | undefined>;
  /**
   * Deletes a queue: its name is free from then on, and nothing of it can be taken or acknowledged.
   * Resolves to its id, for {@linkcode Store.purge | purge}, or to undefined where there is none.
   */
  deleteQueue(tenant: TenantId, queue: string): Promise<string | undefined>;
  /** Removes some of what a deleted queue has left. Resolves to whether there may be more. */
  purge(queueId: string): Promise<boolean>;
  /**
   * Takes one step of a sweep that removes what deleted queues have left, and what retention has run
   * out for. One replica at a time takes one.
   */
  sweep(position: SweepPosition | undefined): Promise<SweepStep>;
  /** Resolves to the server's version, where PostgreSQL answers. */
  health(): Promise<string>;
  /** Makes or migrates the schema, under an advisory lock. */
  migrate(): Promise<void>;
  /** Closes the pool; calls under way get a moment to finish. */
  close(): Promise<void>;
}

/**
 * PostgreSQL was unreachable, gave no answer in time, is read-only, or left the outcome of a commit
 * unknown. `cause` holds what it said.
 */
export class StoreUnavailableError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "StoreUnavailableError";
}

/** PostgreSQL refused the values themselves (SQLSTATE class 22 or 23): repeating it is pointless. */
export class StoreDataError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "StoreDataError";
}
