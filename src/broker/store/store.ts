/**
 * What the replica asks of PostgreSQL, in its own words. Only this folder knows SQL.
 *
 * @module
 */

/** A tenant: a lowercase UUID. */
export type TenantId = string;

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

/** A partition of a tenant's queue that something was stored in. */
export interface TenantPartition extends TouchedPartition {
  /** The tenant. */
  readonly tenant: TenantId;
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

/** A flag, by the name of its row. */
export type FlagName = "maintenance" | "pop_maintenance";

/** What PostgreSQL says of one flag. */
export interface FlagValue {
  /** Whether the mode is on. */
  readonly enabled: boolean;
  /** Raised by every write, from 0 up. */
  readonly version: number;
}

/** What PostgreSQL says of all flags. */
export type FlagValues = Readonly<Record<FlagName, FlagValue>>;

/** What a replica keeps of a queue's configuration. */
export interface QueueConfig {
  /** How long a lease lasts, in seconds. */
  readonly leaseSeconds: number;
  /** Whether its messages are stored encrypted. */
  readonly encryptionEnabled: boolean;
}

/** A queue whose messages are stored encrypted. */
export interface EncryptedQueue {
  /** The tenant. */
  readonly tenant: TenantId;
  /** The queue's name. */
  readonly queue: string;
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

/** Which dead letters. */
export interface DeadLetterQuery {
  /** The queue. */
  readonly queue: string;
  /** Those of one consumer group. */
  readonly consumerGroup?: string;
  /** Those of one partition. */
  readonly partition?: string;
  /** Those that failed at this time or later: RFC 3339. */
  readonly from?: string;
  /** Those that failed at this time or earlier: RFC 3339. */
  readonly to?: string;
  /** At most this many. */
  readonly limit: number;
  /** Pass over so many. */
  readonly offset: number;
  /** At most this many bytes of payload, but never less than one message; no bound by default. */
  readonly bytesMax?: number;
}

/** A message that was given up. */
export interface DeadLetter {
  /** The message's id. */
  readonly id: string;
  /** The producer's name for it. */
  readonly transactionId: string;
  /** Its partition's id. */
  readonly partitionId: string;
  /** Its partition's name. */
  readonly partition: string;
  /** The group that gave it up. */
  readonly consumerGroup: string;
  /** The producer's own JSON text, or what it was encrypted to. */
  readonly payload: string;
  /** Whether the payload is encrypted. */
  readonly encrypted: boolean;
  /** What the consumer said went wrong. */
  readonly error: string | undefined;
  /** How often it had been given back at the charge of a try. */
  readonly retryCount: number;
  /** When it was stored: RFC 3339 in UTC. */
  readonly createdAt: string;
  /** When it was given up: RFC 3339 in UTC. */
  readonly failedAt: string;
}

/** Some of the dead letters that a query asks for, the latest first. */
export interface DeadLetterPage {
  /** The dead letters. */
  readonly messages: readonly DeadLetter[];
  /** How many there are without `limit`, `offset` and `bytesMax`. */
  readonly total: number;
}

/** Where a sweep is. */
export interface SweepPosition {
  /** In which queue. */
  readonly queueId: string;
  /** After which partition, by name: `""` is the beginning. Left out, that queue is done. */
  readonly partition?: string;
}

/** What one step of a sweep did. */
export interface SweepStep {
  /** Another replica is at it. */
  readonly isBusy: boolean;
  /** How many messages it removed. */
  readonly removed: number;
  /** Where to go on; undefined at the end. */
  readonly next: SweepPosition | undefined;
}

/** A queue as configured. */
export interface QueueSettings {
  /** The queue's id. */
  readonly queueId: string;
  /** Its namespace, `""` where none was given. */
  readonly namespace: string;
  /** Its task, `""` where none was given. */
  readonly task: string;
  /** Every option with its value: the known ones, and others as they were given. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** What `/configure` asks for. What is left out keeps its value. */
export interface ConfigureRequest {
  /** The queue's name. */
  readonly queue: string;
  /** Its namespace. */
  readonly namespace?: string;
  /** Its task. */
  readonly task?: string;
  /** Options to change. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** How the connections to PostgreSQL stand. */
export interface PoolStats {
  /** How many there can be. */
  readonly size: number;
  /** How many are in use. */
  readonly busy: number;
  /** How many are open and not in use. */
  readonly idle: number;
  /** How many calls wait for one. */
  readonly waiting: number;
}

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
