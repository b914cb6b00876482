import type { Logger } from "../mesh/runtime.ts";
import {
  type PartitionName,
  type PoppedBatch,
  type PopQuery,
  type Store,
  StoreUnavailableError,
  type TenantId,
} from "./store/store.ts";
import type { Waiter } from "./waiter.ts";
import { QUEUE_MODE, type Waker } from "./waker.ts";
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

/** One pop. */
export interface PopRequest {
  /** The tenant. */
  readonly tenant: TenantId;
  /** What it asks for. */
  readonly query: PopQuery;
  /** How long it waits where there is nothing, in milliseconds; 0 does not wait. */
  readonly waitMs: number;
  /** Aborts as soon as the client is gone. */
  readonly signal: AbortSignal;
}

/** What a {@linkcode PopService} is made of. */
export interface PopServiceOptions {
  /** Where the messages are. */
  readonly store: Pick<Store, "pop" | "giveBack">;
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
  constructor(
    { store, waker, wakes, startWake = () => () => {}, isPaused = () => false, logger }:
      PopServiceOptions,
  ) {
    this.#store = store;
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
  async pop(request: PopRequest): Promise<PoppedBatch | undefined> {
    const { tenant, query, waitMs, signal } = request;
    if (waitMs === 0) return await this.#take(request, "first", undefined);
    const { queue, partition } = query;
    const waiter = this.#waker.arm({ tenant, queue, partition, group: QUEUE_MODE }, waitMs);
    const leave = () => waiter.leave();
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await this.#wait(request, waiter);
    } finally {
      signal.removeEventListener("abort", leave);
      waiter.leave();
    }
  }

  /**
   * Watches over the delivery of a claimed batch: where it fails, the batch is given back free of
   * charge. With autoAck there is nothing to give back.
   */
  watchDelivery(tenant: TenantId, batch: PoppedBatch, completed: Promise<void>): void {
    completed.catch(() => this.#giveBack(tenant, batch));
  }

  /** Resolves once every batch that is being given back has been. */
  async settle(): Promise<void> {
    while (this.#givingBack.size > 0) await Promise.all(this.#givingBack);
  }

  async #wait(request: PopRequest, waiter: Waiter): Promise<PoppedBatch | undefined> {
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
  ): Promise<PoppedBatch | undefined> {
    const { tenant, query, signal } = request;
    if (signal.aborted) return undefined;
    waiter?.begin();
    // It parks all the same, so that clients do not spin.
    if (this.#isPaused()) return undefined;
    this.#counts[COUNTERS[cause].queries]++;
    const result = await this.#store.pop(tenant, query);
    const { batch } = result;
    if (batch === undefined) return undefined;
    const isGone = signal.aborted;
    if (isGone) this.#giveBack(tenant, batch);
    else waiter?.found(batch.partition);
    this.#wakeNext(request, batch, result.more);
    if (isGone) return undefined;
    this.#counts[COUNTERS[cause].replies]++;
    return batch;
  }

  /** Wakes others for what a pop has left. */
  #wakeNext({ tenant, query }: PopRequest, batch: PoppedBatch, more: PartitionName | undefined) {
    if (more === undefined) return;
    const own = { queue: query.queue, partition: batch.partition };
    const isOwn = more.partition === own.partition;
    if (!isOwn) this.#waker.wake({ tenant, ...more, group: QUEUE_MODE });
    // Completed as it was given out, the partition is free again, which nobody could know before. If
    // something else was named, a full batch is what hints at messages left in it.
    if (isOwn || (query.autoAck && batch.messages.length >= query.batch)) {
      this.#wakes.announce(tenant, [own], { group: QUEUE_MODE });
    }
  }

  #giveBack(tenant: TenantId, { leaseId, partition }: PoppedBatch): void {
    if (leaseId === undefined) return;
    const task = this.#store.giveBack(tenant, leaseId).then(
      (available) => {
        if (available !== undefined) {
          this.#wakes.announce(tenant, [available], { group: QUEUE_MODE });
        }
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
