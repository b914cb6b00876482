/**
 * Settings, flags, dead letters, sweeps: what is not the way of a message.
 *
 * @module
 */

import type { TenantId } from "./names.ts";

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
