/**
 * The queues in PostgreSQL.
 *
 * @module
 */

import type { Clock } from "../../mesh/runtime.ts";
import { ack } from "./ack.ts";
import { loadCandidates } from "./candidates.ts";
import { configure } from "./configure.ts";
import { deadLetters } from "./dead_letters.ts";
import { deleteQueue, purge } from "./delete_queue.ts";
import { encryptedQueues, queueConfig, readFlags, writeFlag } from "./flags.ts";
import { migrate } from "./migrate.ts";
import { Pool } from "./pool.ts";
import { discover } from "./discover.ts";
import { extendLease, giveBack } from "./lease.ts";
import { beginGroup, pop } from "./pop.ts";
import { popTogether } from "./pop_together.ts";
import { push } from "./push.ts";
import { spoolPosition, storeSpooled } from "./spooled.ts";
import { sweep } from "./retention.ts";
import { transaction } from "./transaction.ts";
import { parseSchemaName, quoteSchemaName } from "./schema_name.ts";
import {
  type Ack,
  type AckResult,
  type ConfigureRequest,
  type DeadLetterPage,
  type DeadLetterQuery,
  type DiscoveredQueue,
  type DiscoveryFilter,
  type EncryptedQueue,
  type FlagName,
  type FlagValue,
  type FlagValues,
  type PartitionName,
  type PoolStats,
  type PopQuery,
  type PopResult,
  type PushItem,
  type PushResult,
  type QueueConfig,
  type QueueSettings,
  type SpooledBatch,
  type SpooledResult,
  type Store,
  StoreUnavailableError,
  type SweepPosition,
  type SweepStep,
  type TenantId,
  type TransactionRequest,
  type TransactionResult,
} from "./store.ts";

/** What a {@linkcode PostgresStore} is made of. */
export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** The schema that holds everything. */
  readonly schema: string;
  /** At most this many connections. */
  readonly poolSize: number;
  /** Every call ends within this time, in milliseconds. */
  readonly timeoutMs: number;
  /** Time. */
  readonly clock: Clock;
}

/**
 * The queues in PostgreSQL, 14 or later. Until {@linkcode PostgresStore.migrate | migrate} has
 * resolved once, every call but that and `health` rejects with {@linkcode StoreUnavailableError}:
 * nothing is known of the tables.
 */
export class PostgresStore implements Store {
  readonly #pool: Pool;
  readonly #clock: Clock;
  readonly #schema: string;
  /** Every statement names the schema: nothing hangs on a search path. */
  readonly #quoted: string;
  #isMigrated = false;

  /**
   * Sets the store up. Nothing is connected yet.
   *
   * @throws {SyntaxError} If the schema's name is not a plain one.
   */
  constructor({ url, schema, poolSize, timeoutMs, clock }: PostgresStoreOptions) {
    this.#schema = parseSchemaName(schema);
    this.#quoted = quoteSchemaName(schema);
    this.#clock = clock;
    this.#pool = new Pool({ url, size: poolSize, timeoutMs, clock });
  }

  get poolStats(): PoolStats {
    return this.#pool.stats;
  }

  async configure(tenant: TenantId, request: ConfigureRequest): Promise<QueueSettings> {
    return await configure(this.#ready(), this.#quoted, { tenant, request });
  }

  async push(tenant: TenantId, items: readonly PushItem[]): Promise<PushResult> {
    return await push(this.#ready(), this.#quoted, { tenant, items });
  }

  async storeSpooled(batch: SpooledBatch): Promise<SpooledResult> {
    return await storeSpooled(this.#ready(), this.#quoted, batch);
  }

  async spoolPosition(spoolId: string): Promise<number> {
    return await spoolPosition(this.#ready(), this.#quoted, spoolId);
  }

  async queueConfig(tenant: TenantId, queue: string): Promise<QueueConfig | undefined> {
    return await queueConfig(this.#ready(), this.#quoted, { tenant, queue });
  }

  async encryptedQueues(countMax: number): Promise<readonly EncryptedQueue[]> {
    return await encryptedQueues(this.#ready(), this.#quoted, countMax);
  }

  async readFlags(): Promise<FlagValues> {
    return await readFlags(this.#ready(), this.#quoted);
  }

  async writeFlag(name: FlagName, enabled: boolean): Promise<FlagValue> {
    return await writeFlag(this.#ready(), this.#quoted, { name, enabled });
  }

  async pop(tenant: TenantId, query: PopQuery): Promise<PopResult> {
    const now = () => this.#clock.now();
    return await pop(this.#ready(), this.#quoted, { tenant, query, now });
  }

  async popTogether(
    tenant: TenantId,
    queries: readonly PopQuery[],
  ): Promise<readonly PopResult[]> {
    const now = () => this.#clock.now();
    return await popTogether(this.#ready(), this.#quoted, { tenant, queries, now });
  }

  async beginGroup(tenant: TenantId, query: PopQuery): Promise<void> {
    const now = () => this.#clock.now();
    await beginGroup(this.#ready(), this.#quoted, { tenant, query, now });
  }

  async ack(tenant: TenantId, acks: readonly Ack[]): Promise<AckResult> {
    return await ack(this.#ready(), this.#quoted, { tenant, acks });
  }

  async giveBack(tenant: TenantId, leaseId: string): Promise<PartitionName | undefined> {
    return await giveBack(this.#ready(), this.#quoted, { tenant, leaseId });
  }

  async discover(tenant: TenantId, filter: DiscoveryFilter): Promise<readonly DiscoveredQueue[]> {
    return await discover(this.#ready(), this.#quoted, { tenant, filter });
  }

  async extendLease(
    tenant: TenantId,
    leaseId: string,
    seconds: number,
  ): Promise<string | undefined> {
    return await extendLease(this.#ready(), this.#quoted, { tenant, leaseId, seconds });
  }

  async loadCandidates(
    tenant: TenantId,
    { queue, group }: { readonly queue: string; readonly group: string },
    countMax: number,
  ): Promise<readonly string[]> {
    return await loadCandidates(this.#ready(), this.#quoted, { tenant, queue, group, countMax });
  }

  async transaction(tenant: TenantId, request: TransactionRequest): Promise<TransactionResult> {
    return await transaction(this.#ready(), this.#quoted, { tenant, request });
  }

  async deadLetters(tenant: TenantId, query: DeadLetterQuery): Promise<DeadLetterPage | undefined> {
    return await deadLetters(this.#ready(), this.#quoted, { tenant, query });
  }

  async deleteQueue(tenant: TenantId, queue: string): Promise<string | undefined> {
    return await deleteQueue(this.#ready(), this.#quoted, { tenant, queue });
  }

  async purge(queueId: string): Promise<boolean> {
    return await purge(this.#ready(), this.#quoted, queueId);
  }

  async sweep(position: SweepPosition | undefined): Promise<SweepStep> {
    return await sweep(this.#ready(), this.#quoted, position);
  }

  async health(): Promise<string> {
    const [row] = await this.#pool.query("show server_version", []);
    return row!["server_version"] as string;
  }

  async migrate(): Promise<void> {
    await migrate(this.#pool, this.#schema);
    this.#isMigrated = true;
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  #ready(): Pool {
    if (!this.#isMigrated) {
      throw new StoreUnavailableError("The schema in PostgreSQL has not been checked yet");
    }
    return this.#pool;
  }
}
