import { QUEUE_MODE } from "../broker/waker.ts";
import type { Batch, Call, PushCall } from "./history.ts";
import type { SoakReplica } from "./replicas.ts";
import type { World } from "./world.ts";

/** Beyond what it lets the replica wait, no call takes longer, in milliseconds. */
const CALL_MS_MAX = 15_000;

/** A batch, with what is needed to acknowledge it. */
export interface TakenBatch extends Batch {
  readonly partitionId: string;
}

/** How a pop is made. */
export interface PopOptions {
  /** Further parameters of the query. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Only this partition; any, where it is left out. */
  readonly partition?: string | undefined;
  /** How long it waits, in milliseconds. */
  readonly waitMs: number;
  /** Hangs up. */
  readonly signal?: AbortSignal;
}

/** A batch while it is read. */
interface GrowingBatch extends TakenBatch {
  readonly messages: { readonly id: string; readonly transaction: string }[];
}

/** An answer's status and its body, if it has one. */
interface Reply {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- whatever the replica says; tests of its routes check the shapes
  readonly body: any;
}

/** Talks to the replicas of a soak and tells the history of it. Undefined where the outcome is open. */
export class SoakClient {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** Resolves to whether the push was answered. */
  async push(replica: SoakReplica, items: PushCall["items"]): Promise<boolean> {
    const { plan, history, progress } = this.#world;
    const body = {
      items: items.map(({ partition, transaction }) => ({
        queue: plan.queue,
        partition,
        transactionId: transaction,
        payload: { partition, transaction },
      })),
    };
    const request = { kind: "push", items } as const;
    const { call, reply } = await this.#call(replica, { request, path: "/api/v1/push", body });
    if (reply === undefined) return false;
    if (reply.status !== 201) {
      // With a key nothing keeps a replica from spooling.
      history.report(`a push to ${replica.name} was answered ${describe(reply)}`);
      history.lose(call);
      return false;
    }
    // deno-lint-ignore no-explicit-any -- see above
    const statuses = reply.body.map((each: any) => each.status);
    history.answer(call, { kind: "push", statuses });
    progress.notePush(items.map(({ transaction }) => transaction), statuses);
    return true;
  }

  async pop(
    replica: SoakReplica,
    group: string,
    { parameters, partition, waitMs, signal }: PopOptions,
  ): Promise<readonly TakenBatch[] | undefined> {
    const { plan, history, progress } = this.#world;
    const query = new URLSearchParams({
      ...parameters,
      ...nameOf(group),
      ...(waitMs > 0 ? { wait: "true", timeout: String(waitMs) } : {}),
    });
    const place = partition === undefined ? "" : `/partition/${partition}`;
    const { call, reply } = await this.#call(replica, {
      request: { kind: "pop", group },
      path: `/api/v1/pop/queue/${plan.queue}${place}?${query}`,
      waitMs,
      signal,
    });
    if (reply === undefined) return undefined;
    if (this.#isOpen(replica, { call, reply, statuses: [200, 204] })) return undefined;
    const batches = reply.status === 204 ? [] : this.#batchesIn(reply);
    history.answer(call, { kind: "pop", batches });
    for (const batch of batches) progress.noteBatch(group, batch);
    return batches;
  }

  /** Resolves to whether the ack was answered. */
  async ack(
    replica: SoakReplica,
    { group, batch, items }: {
      readonly group: string;
      readonly batch: TakenBatch;
      readonly items: (Call & { kind: "ack" })["items"];
    },
  ): Promise<boolean> {
    const { history, progress } = this.#world;
    const { leaseId, partitionId } = batch;
    const { call, reply } = await this.#call(replica, {
      request: { kind: "ack", leaseId, items },
      path: "/api/v1/ack/batch",
      body: {
        ...nameOf(group),
        acknowledgments: items.map(({ transaction, status }) => ({
          transactionId: transaction,
          partitionId,
          status,
          leaseId,
        })),
      },
    });
    if (reply === undefined) return false;
    if (this.#isOpen(replica, { call, reply, statuses: [200] })) return false;
    // deno-lint-ignore no-explicit-any -- see above
    const outcomes = reply.body.map(({ success, dlq }: any) => ({ success, dlq }));
    history.answer(call, { kind: "ack", outcomes });
    progress.noteAck(group, items, outcomes);
    return true;
  }

  async extend(replica: SoakReplica, { leaseId }: TakenBatch, seconds: number): Promise<void> {
    const { call, reply } = await this.#call(replica, {
      request: { kind: "extend", leaseId, seconds },
      path: `/api/v1/lease/${leaseId}/extend`,
      body: { seconds },
    });
    if (reply === undefined || this.#isOpen(replica, { call, reply, statuses: [200] })) return;
    this.#world.history.answer(call, { kind: "extend", success: reply.body.success });
  }

  #batchesIn({ body }: Reply): TakenBatch[] {
    const batches = new Map<string, GrowingBatch>();
    for (const { id, transactionId, partition, partitionId, leaseId, data } of body.messages) {
      if (data?.transaction !== transactionId || data.partition !== partition) {
        const text = `${transactionId} of ${partition} came with the payload ${
          JSON.stringify(data)
        }`;
        this.#world.history.report(text);
      }
      const batch: GrowingBatch = batches.get(leaseId) ??
        { partition, partitionId, leaseId, messages: [] };
      batches.set(leaseId, batch);
      batch.messages.push({ id, transaction: transactionId });
    }
    return [...batches.values()];
  }

  /** Whether an answer leaves the outcome open. Any but 503 is reported. */
  #isOpen(
    replica: SoakReplica,
    { call, reply, statuses }: {
      readonly call: number;
      readonly reply: Reply;
      readonly statuses: readonly number[];
    },
  ): boolean {
    if (statuses.includes(reply.status)) return false;
    const { history } = this.#world;
    if (reply.status !== 503) history.report(`${replica.name} answered ${describe(reply)}`);
    history.lose(call);
    return true;
  }

  /** A reply that is missing has been told of as lost. */
  async #call(
    replica: SoakReplica,
    { request, path, body, waitMs = 0, signal }: {
      readonly request: Call;
      readonly path: string;
      readonly body?: unknown;
      readonly waitMs?: number;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<{ readonly call: number; readonly reply: Reply | undefined }> {
    const { history, progress, signal: ending } = this.#world;
    const signals = [
      ending,
      AbortSignal.timeout(waitMs + CALL_MS_MAX),
      ...(signal ? [signal] : []),
    ];
    const call = history.send(replica.name, request);
    try {
      const response = await fetch(replica.url + path, {
        signal: AbortSignal.any(signals),
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const { status } = response;
      if (status === 503) progress.refused[request.kind]++;
      return { call, reply: { status, body: text === "" ? undefined : JSON.parse(text) } };
    } catch (error) {
      if (error instanceof SyntaxError) {
        history.report(`${replica.name} answered no JSON: ${error}`);
      }
      progress.lost[request.kind]++;
      history.lose(call);
      return { call, reply: undefined };
    }
  }
}

/** Queue mode is what goes without a name. */
function nameOf(group: string): { consumerGroup?: string } {
  return group === QUEUE_MODE ? {} : { consumerGroup: group };
}

function describe({ status, body }: Reply): string {
  return `${status} ${JSON.stringify(body)}`;
}
