import type { Clock, Logger } from "../mesh/runtime.ts";
import { discoveredPartition, type DiscoveryTarget } from "./discoveries.ts";
import {
  type DiscoveryFilter,
  type PoppedBatch,
  type PopQuery,
  type PopResult,
  type Store,
  StoreUnavailableError,
  type TenantId,
} from "./store/store.ts";
import type { Waiter } from "./waiter.ts";
import { QUEUE_MODE, type WaitTarget, type Waker } from "./waker.ts";
import type { Wakes } from "./wakes.ts";

/** How many pops there were, of each kind, since the start. */
export interface PopCounts {
  /** Queries of pops that had just arrived. */
  readonly firstQueries: number;
  /** Queries after a wake. */
  readonly wakeQueries: number;
  /** Queries of the backoff. */
  readonly pollQueries: number;
  /** Batches found by a first query. */
  readonly repliesAtOnce: number;
  /** Batches found after a wake. */
  readonly repliesByWake: number;
  /** Batches found by the backoff. */
  readonly repliesByPoll: number;
  /** Pops that waited and were answered empty when their timeout was over. */
  readonly emptyByTimeout: number;
}

/** What a pop asks for that names no queue. */
export interface DiscoveryQuery
  extends Omit<PopQuery, "queue" | "partition" | "candidates">, DiscoveryFilter {}

/** What a pop is answered with: batches of one queue, each of a partition of its own. */
export interface Popped extends PoppedBatch {
  /** The queue. */
  readonly queue: string;
  /** The consumer group. */
  readonly consumerGroup: string;
  /** The batches beside the first one. */
  readonly others: readonly PoppedBatch[];
}

/** One pop. */
export interface PopRequest {
  /** The tenant. */
  readonly tenant: TenantId;
  /** What it asks for. */
  readonly query: PopQuery | DiscoveryQuery;
  /** How long it waits where there is nothing, in milliseconds; 0 does not wait. */
  readonly waitMs: number;
  /** Aborts as soon as the client is gone. */
  readonly signal: AbortSignal;
}

/** What a {@linkcode PopService} is made of. */
export interface PopServiceOptions {
  /** Where the messages are. */
  readonly store: Pick<Store, "pop" | "giveBack">;
  /** Says which queues a pop looks through that names none, and records groups. */
  readonly queues: Pick<Store, "discover" | "beginGroup">;
  /** Time, by which a pop arrives. */
  readonly clock: Pick<Clock, "now">;
  /** The pops that wait. */
  readonly waker: Waker;
  /** Where to announce what becomes available. */
  readonly wakes: Wakes;
  /** Begins to time a wake; what it returns is called once the pop has its batch. */
  readonly startWake?: () => () => void;
  /** Whether pops find nothing now, whatever there is; they never do where it is left out. */
  readonly isPaused?: () => boolean;
  /** Where failures are reported that no client hears of. */
  readonly logger: Logger;
}

/** Why a query is made. */
type Cause = "first" | "wake" | "poll";

const COUNTERS = {
  first: { queries: "firstQueries", replies: "repliesAtOnce" },
  wake: { queries: "wakeQueries", replies: "repliesByWake" },
  poll: { queries: "pollQueries", replies: "repliesByPoll" },
} as const;

/** Answers pops: queries, waits where there is nothing, and gives back what a client never got. */
export class PopService {
  readonly #store: Pick<Store, "pop" | "giveBack">;
  readonly #queues: Pick<Store, "discover" | "beginGroup">;
  readonly #clock: Pick<Clock, "now">;
  readonly #waker: Waker;
  readonly #wakes: Wakes;
  readonly #startWake: () => () => void;
  readonly #isPaused: () => boolean;
  readonly #logger: Logger;
  readonly #givingBack = new Set<Promise<void>>();
  readonly #counts = {
    firstQueries: 0,
    wakeQueries: 0,
    pollQueries: 0,
    repliesAtOnce: 0,
    repliesByWake: 0,
    repliesByPoll: 0,
    emptyByTimeout: 0,
  };

  /** Puts it together. */
  constructor(options: PopServiceOptions) {
    const { store, queues, clock, waker, wakes, logger } = options;
    const { startWake = () => () => {}, isPaused = () => false } = options;
    this.#store = store;
    this.#queues = queues;
    this.#clock = clock;
    this.#waker = waker;
    this.#wakes = wakes;
    this.#startWake = startWake;
    this.#isPaused = isPaused;
    this.#logger = logger;
  }

  /** How many pops there were. */
  get counts(): PopCounts {
    return { ...this.#counts };
  }

  /**
   * Resolves to a batch, or to undefined where there was nothing, or where the client left: then
   * nothing stays claimed for it.
   *
   * Rejects with {@linkcode StoreUnavailableError} where the first query cannot be made. A pop that
   * is already waiting outlives that: it goes on by the backoff, and rejects only if its timeout ends
   * before PostgreSQL is back.
   */
  async pop(request: PopRequest): Promise<Popped | undefined> {
    const { tenant, query, waitMs, signal } = request;
    const arrived = { ...request, query: { ...query, arrivedAt: this.#clock.now() } };
    if (waitMs === 0) return await this.#take(arrived, "first", undefined);
    const waiter = this.#waker.arm(toTarget(tenant, query), waitMs);
    const leave = () => waiter.leave();
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await this.#wait(arrived, waiter);
    } finally {
      signal.removeEventListener("abort", leave);
      waiter.leave();
    }
  }

  /**
   * Watches over the delivery of claimed batches: where it fails, they are given back free of charge.
   * With autoAck there is nothing to give back.
   */
  watchDelivery(tenant: TenantId, popped: Popped, completed: Promise<void>): void {
    completed.catch(() => this.#giveBack(tenant, popped));
  }

  /** Resolves once every batch that is being given back has been. */
  async settle(): Promise<void> {
    while (this.#givingBack.size > 0) await Promise.all(this.#givingBack);
  }

  async #wait(request: PopRequest, waiter: Waiter): Promise<Popped | undefined> {
    let cause: Cause = "first";
    let failure: StoreUnavailableError | undefined;
    let stopWake: (() => void) | undefined;
    for (;;) {
      try {
        const batch = await this.#take(request, cause, waiter);
        if (batch !== undefined) {
          stopWake?.();
          return batch;
        }
        failure = undefined;
      } catch (error) {
        if (cause === "first" || !(error instanceof StoreUnavailableError)) throw error;
        failure = error;
      }
      const release = await waiter.empty();
      if (release === "wake" || release === "poll") {
        cause = release;
        stopWake = release === "wake" ? this.#startWake() : undefined;
        continue;
      }
      if (release === "timeout" && failure !== undefined) throw failure;
      if (release === "timeout") this.#counts.emptyByTimeout++;
      return undefined;
    }
  }

  /** Queries once. */
  async #take(
    request: PopRequest,
    cause: Cause,
    waiter: Waiter | undefined,
  ): Promise<Popped | undefined> {
    const { tenant, query, signal } = request;
    if (signal.aborted) return undefined;
    waiter?.begin();
    if (this.#isPaused()) {
      // It has arrived, by which its group begins, and parks all the same, so that clients do not spin.
      if (cause === "first") await this.#beginGroup(tenant, query);
      return undefined;
    }
    this.#counts[COUNTERS[cause].queries]++;
    const { queue, batch, ...result } = "queue" in query
      ? { queue: query.queue, ...await this.#store.pop(tenant, query) }
      : await this.#discover(request, query, waiter);
    if (batch === undefined) return undefined;
    const { consumerGroup = QUEUE_MODE } = query;
    const popped = { queue, consumerGroup, ...batch, others: result.others ?? [] };
    const isGone = signal.aborted;
    if (isGone) this.#giveBack(tenant, popped);
    else waiter?.found(...takenNames(query, popped));
    this.#wakeNext(tenant, consumerGroup, result);
    if (isGone) return undefined;
    this.#counts[COUNTERS[cause].replies]++;
    return popped;
  }

  async #beginGroup(tenant: TenantId, query: PopQuery | DiscoveryQuery): Promise<void> {
    if ((query.consumerGroup ?? QUEUE_MODE) === QUEUE_MODE) return;
    if ("queue" in query) return await this.#queues.beginGroup(tenant, query);
    const { namespace: _, task: __, ...rest } = query;
    for (const { queue, isWorthAPop } of await this.#queues.discover(tenant, query)) {
      if (isWorthAPop) await this.#queues.beginGroup(tenant, { ...rest, queue });
    }
  }

  /** Queries the queues that match, one after the other, until one of them gives something. */
  async #discover(
    { tenant, signal }: PopRequest,
    query: DiscoveryQuery,
    waiter: Waiter | undefined,
  ): Promise<PopResult & { readonly queue: string }> {
    const { namespace: _, task: __, ...rest } = query;
    // A queue that is new to the group has been waited for since then.
    const arrivedAt = waiter?.group.oldestArrival ?? query.arrivedAt;
    for (;;) {
      const found = await this.#queues.discover(tenant, query);
      const names = found.map(({ queue }) => queue);
      // Wakes of these queues come from now on. What came before has to be looked for.
      const isNews = waiter !== undefined &&
        this.#waker.resolve(toDiscoveryTarget(tenant, query), names);
      for (const { queue, isWorthAPop } of found) {
        if (!isWorthAPop || signal.aborted) continue;
        const result = await this.#store.pop(tenant, {
          ...rest,
          queue,
          ...(arrivedAt === undefined ? {} : { arrivedAt }),
        });
        if (result.batch !== undefined) return { ...result, queue };
      }
      if (!isNews || signal.aborted) return { queue: "", batch: undefined, more: undefined };
      waiter.begin();
    }
  }

  /** Wakes others for what a pop has left. */
  #wakeNext(
    tenant: TenantId,
    group: string,
    { more, left = [], delayed = [] }: Omit<PopResult, "batch">,
  ): void {
    if (more !== undefined) this.#waker.wake({ tenant, ...more, group });
    // Completed as it was given out, a partition is free again, which nobody could know before.
    this.#wakes.announce(tenant, [...left, ...delayed], { group });
  }

  #giveBack(tenant: TenantId, { consumerGroup: group, others, ...first }: Popped): void {
    for (const batch of [first, ...others]) this.#giveOneBack(tenant, group, batch);
  }

  #giveOneBack(tenant: TenantId, group: string, { leaseId, partition }: PoppedBatch): void {
    if (leaseId === undefined) return;
    const task = this.#store.giveBack(tenant, leaseId).then(
      (available) => {
        if (available !== undefined) this.#wakes.announce(tenant, [available], { group });
      },
      (error) => {
        this.#logger.error("A batch could not be given back; its lease has to run out", {
          partition,
          leaseId,
          error,
        });
      },
    ).finally(() => this.#givingBack.delete(task));
    this.#givingBack.add(task);
  }
}

function toTarget(
  tenant: TenantId,
  query: PopQuery | DiscoveryQuery,
): WaitTarget | DiscoveryTarget {
  if (!("queue" in query)) return toDiscoveryTarget(tenant, query);
  const { queue, partition, consumerGroup: group = QUEUE_MODE } = query;
  return { tenant, queue, partition, group };
}

function toDiscoveryTarget(tenant: TenantId, query: DiscoveryQuery): DiscoveryTarget {
  const { namespace, task, consumerGroup: group = QUEUE_MODE } = query;
  return { tenant, namespace, task, group };
}

/** The names under which the waiter of a query holds wakes for what was taken. */
function takenNames(query: PopQuery | DiscoveryQuery, popped: Popped): string[] {
  const names = [popped, ...popped.others].map(({ partition }) => partition);
  return "queue" in query ? names : names.map((name) => discoveredPartition(popped.queue, name));
}
