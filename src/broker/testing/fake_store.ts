/**
 * A store in memory, for tests of what stands above it.
 *
 * @module
 */

import type { Clock } from "../../mesh/runtime.ts";
import {
  type Ack,
  type AckOutcome,
  type AckResult,
  type ConfigureRequest,
  type DelayedPartition,
  type FlagName,
  type FlagValue,
  type FlagValues,
  type PartitionName,
  type PopQuery,
  type PopResult,
  type PushItem,
  type PushOutcome,
  type PushResult,
  type QueueConfig,
  type QueueSettings,
  type SpooledBatch,
  type SpooledResult,
  type Store,
  StoreUnavailableError,
  type TenantId,
} from "../store/store.ts";

/** A message as it is stored. */
export interface FakeMessage {
  readonly id: string;
  readonly transactionId: string;
  readonly payload: string;
  readonly encrypted: boolean;
}

interface FakeLease {
  readonly id: string;
  readonly until: number;
  /** The batch: from the cursor up to here. */
  readonly end: number;
  readonly done: Set<number>;
}

interface FakePartition {
  readonly id: string;
  readonly name: string;
  readonly messages: FakeMessage[];
  cursor: number;
  lease: FakeLease | undefined;
  /** How many transactions that are under way hold its row: a pop passes it over meanwhile. */
  locks: number;
}

/** What a {@linkcode FakeStore} is made of. */
export interface FakeStoreOptions {
  /** Time. */
  readonly clock: Clock;
  /** How long one leg of a call takes, in milliseconds; no time at all where it is left out. */
  readonly latencyMs?: () => number;
  /** How long a lease lasts, in milliseconds; a minute where it is left out. */
  readonly leaseMs?: number;
}

/**
 * Queues as a store keeps them: partitions in order, leases, duplicates. A call takes effect at one
 * instant, one leg after it was made and one leg before it is answered.
 */
export class FakeStore implements Store {
  /** Every call rejects while this is set. */
  isAway = false;
  /** The next calls of `migrate` reject with this. */
  migrationError: Error | undefined;
  /** How often `pop` was called. */
  popCount = 0;
  /** How often `migrate` was called. */
  migrateCount = 0;
  /** The leases that were given back. */
  readonly givenBack: string[] = [];
  /** What acks say can be taken later. */
  delayed: readonly DelayedPartition[] = [];
  /** The maintenance flags. */
  readonly flags: Record<FlagName, FlagValue> = {
    maintenance: { enabled: false, version: 0 },
    pop_maintenance: { enabled: false, version: 0 },
  };
  /** How often `readFlags` was called. */
  flagReadCount = 0;
  /** Whether it was closed. */
  isClosed = false;
  readonly #clock: Clock;
  readonly #latencyMs: () => number;
  readonly #leaseMs: number;
  readonly #queues = new Map<string, Map<string, FakePartition>>();
  readonly #settings = new Map<string, QueueSettings>();
  readonly #partitions = new Map<string, FakePartition & { queue: string }>();
  readonly #positions = new Map<string, number>();
  #ids = 0;

  constructor({ clock, latencyMs = () => 0, leaseMs = 60_000 }: FakeStoreOptions) {
    this.#clock = clock;
    this.#latencyMs = latencyMs;
    this.#leaseMs = leaseMs;
  }

  /** The messages of `queue` as they are stored, partition after partition. */
  stored(queue: string): readonly FakeMessage[] {
    return [...this.#queue(queue).values()].flatMap(({ messages }) => messages);
  }

  /** The partitions of `queue` that a pop could take from now. */
  takeable(queue: string): string[] {
    return [...this.#queue(queue).values()].filter((p) => this.#canTake(p)).map((p) => p.name);
  }

  /** How many partitions are leased now. */
  get leaseCount(): number {
    return [...this.#partitions.values()].filter((p) => this.#isLeased(p)).length;
  }

  async configure(_tenant: TenantId, request: ConfigureRequest): Promise<QueueSettings> {
    await this.#leg();
    const old = this.#settings.get(request.queue);
    const settings: QueueSettings = {
      queueId: old?.queueId ?? `queue-${++this.#ids}`,
      namespace: request.namespace ?? old?.namespace ?? "",
      task: request.task ?? old?.task ?? "",
      options: { leaseTime: 300, ...old?.options, ...request.options },
    };
    this.#settings.set(request.queue, settings);
    return settings;
  }

  async push(_tenant: TenantId, items: readonly PushItem[]): Promise<PushResult> {
    await this.#leg();
    const touched = new Map<string, PartitionName>();
    const misjudged = new Set<string>();
    const outcomes = items.map((item): PushOutcome => {
      const { queue, partition, messageId } = item;
      if (this.#isMisjudged(item)) {
        misjudged.add(queue);
        return { status: "failed", messageId, error: "the encryption was changed" };
      }
      const outcome = this.#store(item);
      const name = { queue, partition };
      if (outcome.status === "queued") touched.set(JSON.stringify(name), name);
      return outcome;
    });
    await this.#leg();
    return { outcomes, touched: [...touched.values()], misjudged: [...misjudged] };
  }

  async storeSpooled(batch: SpooledBatch): Promise<SpooledResult> {
    await this.#leg();
    const { spoolId, after, position, items } = batch;
    const held = this.#positions.get(spoolId) ?? 0;
    if (held !== after) return { position: held, isMisjudged: false, touched: [] };
    if (items.some((item) => this.#isMisjudged(item))) {
      return { position: held, isMisjudged: true, touched: [] };
    }
    this.#positions.set(spoolId, position);
    const stored = items.filter((item) => this.#store(item).status === "queued");
    await this.#leg();
    return { position, isMisjudged: false, touched: stored };
  }

  async spoolPosition(spoolId: string): Promise<number> {
    await this.#leg();
    return this.#positions.get(spoolId) ?? 0;
  }

  async queueConfig(_tenant: TenantId, queue: string): Promise<QueueConfig | undefined> {
    await this.#leg();
    const isThere = this.#settings.has(queue) || this.#queues.has(queue);
    const encryptionEnabled = this.#isEncrypted(queue);
    await this.#leg();
    return isThere ? { leaseSeconds: this.#leaseMs / 1000, encryptionEnabled } : undefined;
  }

  async readFlags(): Promise<FlagValues> {
    this.flagReadCount++;
    await this.#leg();
    const values = { ...this.flags };
    await this.#leg();
    return values;
  }

  async writeFlag(name: FlagName, enabled: boolean): Promise<FlagValue> {
    await this.#leg();
    const value = { enabled, version: this.flags[name].version + 1 };
    this.flags[name] = value;
    await this.#leg();
    return value;
  }

  async pop(_tenant: TenantId, query: PopQuery): Promise<PopResult> {
    this.popCount++;
    await this.#leg();
    const queue = this.#queue(query.queue);
    // A map keeps the order in which keys were first put in.
    const all = [
      ...new Map([
        ...(query.candidates ?? []).map((name) => [name, queue.get(name)] as const),
        ...queue,
      ]).values(),
    ].filter((partition) => partition !== undefined);
    const filtered = query.partition === undefined
      ? all
      : all.filter(({ name }) => name === query.partition);
    const [taken, other] = filtered.filter((partition) => this.#canTake(partition));
    if (taken === undefined) {
      await this.#leg();
      return { batch: undefined, more: undefined };
    }
    let more = other && { queue: query.queue, partition: other.name };
    const { cursor } = taken;
    const messages = fitting(taken.messages.slice(cursor, cursor + query.batch), query.bytesMax);
    const leaseId = `lease-${++this.#ids}`;
    if (query.autoAck) {
      taken.locks++;
      await this.#leg();
      taken.locks--;
      taken.cursor += messages.length;
      if (this.#canTake(taken)) more = { queue: query.queue, partition: taken.name };
    } else {
      const leaseMs = query.leaseSeconds === undefined ? this.#leaseMs : query.leaseSeconds * 1000;
      taken.lease = {
        id: leaseId,
        until: this.#clock.now() + leaseMs,
        end: cursor + messages.length,
        done: new Set(),
      };
    }
    await this.#leg();
    return {
      batch: {
        partition: taken.name,
        partitionId: taken.id,
        ...(query.autoAck ? {} : { leaseId }),
        messages: messages.map((message) => ({
          ...message,
          createdAt: "2026-01-01T00:00:00.000Z",
        })),
      },
      more,
    };
  }

  async ack(_tenant: TenantId, acks: readonly Ack[]): Promise<AckResult> {
    await this.#leg();
    const locked = [...new Set(acks.map(({ partitionId }) => this.#partitions.get(partitionId)))]
      .filter((partition) => partition !== undefined);
    locked.forEach((partition) => partition.locks++);
    await this.#leg();
    const outcomes = acks.map((ack) => this.#ack(ack));
    locked.forEach((partition) => partition.locks--);
    // Read after the commit: a push that committed during the transaction woke those who could not
    // take its message yet.
    const available = locked.filter((partition) => this.#canTake(partition))
      .map(({ queue, name }) => ({ queue, partition: name }));
    await this.#leg();
    return { outcomes, available, delayed: this.delayed };
  }

  async giveBack(_tenant: TenantId, leaseId: string): Promise<PartitionName | undefined> {
    await this.#leg();
    this.givenBack.push(leaseId);
    const partition = [...this.#partitions.values()].find(({ lease }) => lease?.id === leaseId);
    if (partition === undefined) return undefined;
    partition.lease = undefined;
    await this.#leg();
    return { queue: partition.queue, partition: partition.name };
  }

  async loadCandidates(
    _tenant: TenantId,
    { queue }: { readonly queue: string; readonly group: string },
    countMax: number,
  ): Promise<readonly string[]> {
    await this.#leg();
    return this.takeable(queue).slice(0, countMax);
  }

  async health(): Promise<string> {
    await this.#leg();
    return "15.0";
  }

  async migrate(): Promise<void> {
    this.migrateCount++;
    await this.#leg();
    if (this.migrationError !== undefined) throw this.migrationError;
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }

  #store({ queue, partition: name, messageId, ...rest }: PushItem): PushOutcome {
    const { transactionId, payload, encrypted = false } = rest;
    const { messages } = this.#partition(queue, name);
    const known = messages.find((message) => message.transactionId === transactionId);
    if (known !== undefined) return { status: "duplicate", messageId: known.id };
    messages.push({ id: messageId, transactionId, payload, encrypted });
    return { status: "queued", messageId };
  }

  #isMisjudged({ queue, encrypted = false }: PushItem): boolean {
    return this.#isEncrypted(queue) !== encrypted;
  }

  #isEncrypted(queue: string): boolean {
    return this.#settings.get(queue)?.options["encryptionEnabled"] === true;
  }

  #ack(ack: Ack): AckOutcome {
    const fail = (error: string) => ({
      success: false,
      error,
      leaseReleased: false,
      dlq: false,
      noop: false,
    });
    const partition = this.#partitions.get(ack.partitionId);
    const lease = partition?.lease;
    if (partition === undefined || lease === undefined || !this.#isLeased(partition)) {
      return fail("invalid or expired lease");
    }
    if (ack.leaseId !== undefined && ack.leaseId !== lease.id) {
      return fail("invalid or expired lease");
    }
    const index = partition.messages.findIndex(({ transactionId }, at) =>
      at >= partition.cursor && at < lease.end && transactionId === ack.transactionId
    );
    if (index < 0) return fail("unknown transactionId");
    if (ack.status !== "completed") {
      partition.cursor = index;
      partition.lease = undefined;
    } else if (index + 1 === lease.end) {
      partition.cursor = lease.end;
      partition.lease = undefined;
    } else {
      lease.done.add(index);
    }
    return { success: true, leaseReleased: partition.lease === undefined, dlq: false, noop: false };
  }

  async #leg(): Promise<void> {
    if (this.isAway) throw new StoreUnavailableError("PostgreSQL is away");
    const ms = this.#latencyMs();
    if (ms > 0) await new Promise<void>((resolve) => this.#clock.setTimer(ms, resolve));
    if (this.isAway) throw new StoreUnavailableError("PostgreSQL is away");
  }

  #isLeased({ lease }: FakePartition): boolean {
    return lease !== undefined && lease.until > this.#clock.now();
  }

  #canTake(partition: FakePartition): boolean {
    return partition.cursor < partition.messages.length && partition.locks === 0 &&
      !this.#isLeased(partition);
  }

  #queue(name: string): Map<string, FakePartition> {
    let queue = this.#queues.get(name);
    if (queue === undefined) this.#queues.set(name, queue = new Map());
    return queue;
  }

  #partition(queue: string, name: string): FakePartition {
    const partitions = this.#queue(queue);
    let partition = partitions.get(name);
    if (partition === undefined) {
      const made = {
        id: `partition-${++this.#ids}`,
        queue,
        name,
        messages: [],
        cursor: 0,
        lease: undefined,
        locks: 0,
      };
      partition = made;
      partitions.set(name, made);
      this.#partitions.set(made.id, made);
    }
    return partition;
  }
}

/** As many as have at most `bytesMax` of payload, but at least one. */
function fitting(messages: readonly FakeMessage[], bytesMax = Infinity): FakeMessage[] {
  let bytes = 0;
  return messages.filter(({ payload }, i) => (bytes += payload.length) <= bytesMax || i === 0);
}
