/**
 * A store in memory, for tests of what stands above it.
 *
 * @module
 */

import type { Clock } from "../../mesh/runtime.ts";
import { QUEUE_MODE } from "../waker.ts";
import { DEFAULT_TENANT } from "../../protocol/tenant.ts";
import {
  type Ack,
  type AckOutcome,
  type AckResult,
  type ConfigureRequest,
  type DeadLetter,
  type DeadLetterPage,
  type DeadLetterQuery,
  type DelayedPartition,
  type DiscoveredQueue,
  type DiscoveryFilter,
  type EncryptedQueue,
  type FlagName,
  type FlagValue,
  type FlagValues,
  type PartitionName,
  type PoppedBatch,
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
  type SweepPosition,
  type SweepStep,
  type TenantId,
  type TransactionRequest,
  type TransactionResult,
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

/** How far a group has come in a partition. */
interface FakeCursor {
  cursor: number;
  lease: FakeLease | undefined;
  /** How many transactions that are under way hold its row: a pop passes it over meanwhile. */
  locks: number;
}

interface FakePartition {
  readonly id: string;
  readonly name: string;
  readonly messages: FakeMessage[];
  /** By group. A group that is not in it starts at the beginning. */
  readonly cursors: Map<string, FakeCursor>;
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
  /** The dead letters of every queue. */
  letters: readonly DeadLetter[] = [];
  /** What dead letters were asked for. */
  readonly deadLetterQueries: DeadLetterQuery[] = [];
  /** How often `purge` was called. */
  purgeCount = 0;
  /** How often `sweep` was called. */
  sweepCount = 0;
  /** Whether it was closed. */
  isClosed = false;
  readonly #clock: Clock;
  readonly #latencyMs: () => number;
  readonly #leaseMs: number;
  readonly #queues = new Map<string, Map<string, FakePartition>>();
  readonly #settings = new Map<string, QueueSettings>();
  readonly #partitions = new Map<string, FakePartition & { queue: string }>();
  readonly #positions = new Map<string, number>();
  /** The groups that are recorded, by queue and name. */
  readonly #groups = new Set<string>();
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
  takeable(queue: string, group: string = QUEUE_MODE): string[] {
    return [...this.#queue(queue).values()].filter((p) => this.#canTake(p, group)).map((p) =>
      p.name
    );
  }

  /** How many partitions are leased now. */
  get leaseCount(): number {
    return [...this.#partitions.values()].flatMap(({ cursors }) => [...cursors.values()])
      .filter((cursor) => this.#isLeased(cursor)).length;
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

  async encryptedQueues(countMax: number): Promise<readonly EncryptedQueue[]> {
    await this.#leg();
    const queues = [...this.#settings.keys()].filter((queue) => this.#isEncrypted(queue));
    await this.#leg();
    return queues.slice(0, countMax).map((queue) => ({ tenant: DEFAULT_TENANT, queue }));
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
    const { queue: queueName, consumerGroup: group = QUEUE_MODE, partitions = 1 } = query;
    await this.#leg();
    const queue = this.#queue(queueName);
    this.#record(queueName, query);
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
    const ready = filtered.filter((partition) => this.#canTake(partition, group));
    const claimed: FakePartition[] = [];
    const batches: PoppedBatch[] = [];
    let left = query.batch;
    for (const partition of ready.slice(0, partitions)) {
      if (left === 0) break;
      const taken = this.#cursor(partition, group);
      const messages = fitting(
        partition.messages.slice(taken.cursor, taken.cursor + left),
        query.bytesMax,
      );
      left -= messages.length;
      const leaseId = `lease-${++this.#ids}`;
      claimed.push(partition);
      batches.push({
        partition: partition.name,
        partitionId: partition.id,
        ...(query.autoAck ? {} : { leaseId }),
        messages: messages.map((message) => ({
          ...message,
          createdAt: "2026-01-01T00:00:00.000Z",
        })),
      });
      if (query.autoAck) continue;
      const leaseMs = query.leaseSeconds === undefined ? this.#leaseMs : query.leaseSeconds * 1000;
      taken.lease = {
        id: leaseId,
        until: this.#clock.now() + leaseMs,
        end: taken.cursor + messages.length,
        done: new Set(),
      };
    }
    if (batches.length === 0) {
      await this.#leg();
      return { batch: undefined, more: undefined };
    }
    const other = ready[batches.length];
    let free: FakePartition[] = [];
    if (query.autoAck) {
      const cursors = claimed.map((partition) => this.#cursor(partition, group));
      cursors.forEach((cursor) => cursor.locks++);
      await this.#leg();
      cursors.forEach((cursor, i) => {
        cursor.locks--;
        cursor.cursor += batches[i]!.messages.length;
      });
      free = claimed.filter((partition) => this.#canTake(partition, group));
    }
    await this.#leg();
    const [batch, ...others] = batches;
    return {
      batch,
      others,
      more: other && { queue: queueName, partition: other.name },
      left: free.map(({ name }) => ({ queue: queueName, partition: name })),
    };
  }

  /** Takes no longer than one pop. */
  async popTogether(
    tenant: TenantId,
    queries: readonly PopQuery[],
  ): Promise<readonly PopResult[]> {
    return await Promise.all(queries.map((query) => this.pop(tenant, query)));
  }

  async beginGroup(_tenant: TenantId, query: PopQuery): Promise<void> {
    await this.#leg();
    this.#record(query.queue, query);
    await this.#leg();
  }

  async discover(_tenant: TenantId, filter: DiscoveryFilter): Promise<readonly DiscoveredQueue[]> {
    await this.#leg();
    const { namespace, task, consumerGroup: group = QUEUE_MODE } = filter;
    const found = [...this.#settings]
      .filter(([, settings]) => namespace === undefined || settings.namespace === namespace)
      .filter(([, settings]) => task === undefined || settings.task === task)
      .map(([queue]) => ({
        queue,
        isWorthAPop: this.takeable(queue, group).length > 0 || !this.#isRecorded(queue, group),
      }));
    await this.#leg();
    return found;
  }

  async extendLease(
    _tenant: TenantId,
    leaseId: string,
    seconds: number,
  ): Promise<string | undefined> {
    await this.#leg();
    const cursor = this.#holder(leaseId);
    if (cursor?.lease === undefined || !this.#isLeased(cursor)) return undefined;
    const until = Math.max(cursor.lease.until, this.#clock.now() + seconds * 1000);
    cursor.lease = { ...cursor.lease, until };
    await this.#leg();
    return new Date(until).toISOString();
  }

  async ack(_tenant: TenantId, acks: readonly Ack[]): Promise<AckResult> {
    await this.#leg();
    const places = new Map(acks.flatMap(({ partitionId, consumerGroup: group = QUEUE_MODE }) => {
      const partition = this.#partitions.get(partitionId);
      return partition ? [[JSON.stringify([partitionId, group]), { partition, group }]] : [];
    }));
    const locked = [...places.values()].map(({ partition, group }) => ({
      partition,
      group,
      cursor: this.#cursor(partition, group),
    }));
    locked.forEach(({ cursor }) => cursor.locks++);
    await this.#leg();
    const outcomes = acks.map((ack) => this.#ack(ack));
    locked.forEach(({ cursor }) => cursor.locks--);
    // Read after the commit: a push that committed during the transaction woke those who could not
    // take its message yet.
    const available = locked.filter(({ partition, group }) => this.#canTake(partition, group))
      .map(({ partition: { queue, name }, group }) => ({
        queue,
        partition: name,
        consumerGroup: group,
      }));
    await this.#leg();
    return { outcomes, available, delayed: this.delayed };
  }

  async giveBack(_tenant: TenantId, leaseId: string): Promise<PartitionName | undefined> {
    await this.#leg();
    this.givenBack.push(leaseId);
    const cursor = this.#holder(leaseId);
    const partition = [...this.#partitions.values()]
      .find(({ cursors }) => [...cursors.values()].some((each) => each === cursor));
    if (cursor === undefined || partition === undefined) return undefined;
    cursor.lease = undefined;
    await this.#leg();
    return { queue: partition.queue, partition: partition.name };
  }

  async loadCandidates(
    _tenant: TenantId,
    { queue, group }: { readonly queue: string; readonly group: string },
    countMax: number,
  ): Promise<readonly string[]> {
    await this.#leg();
    return this.takeable(queue, group).slice(0, countMax);
  }

  async transaction(tenant: TenantId, request: TransactionRequest): Promise<TransactionResult> {
    const before = [...this.#partitions.values()].map((partition) => ({
      partition,
      messages: [...partition.messages],
      cursors: [...partition.cursors].map(([group, cursor]) => [group, { ...cursor }] as const),
    }));
    const rollBack = () => {
      for (const partition of this.#partitions.values()) partition.messages.length = 0;
      for (const { partition, messages, cursors } of before) {
        partition.messages.push(...messages);
        for (const [group, cursor] of cursors) partition.cursors.set(group, cursor);
      }
    };
    const { items, acks, requiredLeases } = request;
    const isHeld = requiredLeases.every((id) =>
      before.some(({ cursors }) =>
        cursors.some(([, cursor]) => cursor.lease?.id === id && this.#isLeased(cursor))
      )
    );
    const pushed = await this.push(tenant, items);
    const acked = await this.ack(tenant, acks);
    const failed = acked.outcomes.find(({ success }) => !success);
    const isFailed = (pushed.misjudged ?? []).length > 0 || failed !== undefined || !isHeld;
    if (!isFailed) return { isCommitted: true, pushed, acked };
    rollBack();
    return { isCommitted: false, error: failed?.error ?? "not held", pushed, acked };
  }

  async deadLetters(
    _tenant: TenantId,
    query: DeadLetterQuery,
  ): Promise<DeadLetterPage | undefined> {
    await this.#leg();
    this.deadLetterQueries.push(query);
    const isThere = this.#settings.has(query.queue) || this.#queues.has(query.queue);
    return isThere ? { messages: this.letters, total: this.letters.length } : undefined;
  }

  async deleteQueue(_tenant: TenantId, queue: string): Promise<string | undefined> {
    await this.#leg();
    const wasThere = this.#settings.delete(queue) || this.#queues.has(queue);
    this.#queues.delete(queue);
    for (const [id, partition] of this.#partitions) {
      if (partition.queue === queue) this.#partitions.delete(id);
    }
    await this.#leg();
    return wasThere ? `deleted-${++this.#ids}` : undefined;
  }

  async purge(_queueId: string): Promise<boolean> {
    this.purgeCount++;
    await this.#leg();
    return false;
  }

  async sweep(_position: SweepPosition | undefined): Promise<SweepStep> {
    this.sweepCount++;
    await this.#leg();
    return { isBusy: false, removed: 0, next: undefined };
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
    if (partition === undefined) return fail("invalid or expired lease");
    const cursor = this.#cursor(partition, ack.consumerGroup ?? QUEUE_MODE);
    const { lease } = cursor;
    if (lease === undefined || !this.#isLeased(cursor)) return fail("invalid or expired lease");
    if (ack.leaseId !== undefined && ack.leaseId !== lease.id) {
      return fail("invalid or expired lease");
    }
    const index = partition.messages.findIndex(({ transactionId }, at) =>
      at >= cursor.cursor && at < lease.end && transactionId === ack.transactionId
    );
    if (index < 0) return fail("unknown transactionId");
    if (ack.status !== "completed") {
      cursor.cursor = index;
      cursor.lease = undefined;
    } else if (index + 1 === lease.end) {
      cursor.cursor = lease.end;
      cursor.lease = undefined;
    } else {
      lease.done.add(index);
    }
    return { success: true, leaseReleased: cursor.lease === undefined, dlq: false, noop: false };
  }

  async #leg(): Promise<void> {
    if (this.isAway) throw new StoreUnavailableError("PostgreSQL is away");
    const ms = this.#latencyMs();
    if (ms > 0) await new Promise<void>((resolve) => this.#clock.setTimer(ms, resolve));
    if (this.isAway) throw new StoreUnavailableError("PostgreSQL is away");
  }

  #isLeased(cursor: FakeCursor | undefined): boolean {
    return cursor?.lease !== undefined && cursor.lease.until > this.#clock.now();
  }

  #canTake(partition: FakePartition, group: string): boolean {
    const cursor = this.#cursor(partition, group);
    return cursor.cursor < partition.messages.length && cursor.locks === 0 &&
      !this.#isLeased(cursor);
  }

  #cursor({ cursors }: FakePartition, group: string): FakeCursor {
    let cursor = cursors.get(group);
    if (cursor === undefined) {
      cursors.set(group, cursor = { cursor: 0, lease: undefined, locks: 0 });
    }
    return cursor;
  }

  /** Whose lease it is. */
  #holder(leaseId: string): FakeCursor | undefined {
    return [...this.#partitions.values()].flatMap(({ cursors }) => [...cursors.values()])
      .find(({ lease }) => lease?.id === leaseId);
  }

  #isRecorded(queue: string, group: string): boolean {
    return group === QUEUE_MODE || this.#groups.has(JSON.stringify([queue, group]));
  }

  /** A group that is new starts behind what is there, unless its first pop says otherwise. */
  #record(queue: string, { consumerGroup: group = QUEUE_MODE, start = "new" }: PopQuery): void {
    if (this.#isRecorded(queue, group)) return;
    this.#groups.add(JSON.stringify([queue, group]));
    if (start !== "new") return;
    for (const partition of this.#queue(queue).values()) {
      this.#cursor(partition, group).cursor = partition.messages.length;
    }
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
        cursors: new Map(),
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
