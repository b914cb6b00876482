import { DemoFailure } from "./failure.ts";

/** The part of a replica's figures that tells how its parked pops were answered. */
export interface WakerFigures {
  /** Pops that are parked now. */
  readonly parked: number;
  /** Queries of pops that had just arrived. */
  readonly first_queries: number;
  /** Replies that a pop found as it arrived. */
  readonly replies_at_once: number;
  /** Replies found after a wake. */
  readonly replies_by_wake: number;
  /** Replies found by a poll of the backoff. */
  readonly replies_by_poll: number;
  /** Pops whose timeout ended first. */
  readonly empty_by_timeout: number;
}

/** What the stats route answers, as far as the demo looks. */
export interface ReplicaStats {
  /** False without peers, and then the figures of the mesh are missing. */
  readonly enabled: boolean;
  /** The peers that this replica dials. */
  readonly peers?: readonly { readonly port: number; readonly connected: boolean }[];
  /** Those that it heard from. */
  readonly servers?: readonly { readonly server_id: string; readonly alive: boolean }[];
  /** How many of them it heard from lately. */
  readonly servers_alive?: number;
  /** How many of them it did not. */
  readonly servers_dead?: number;
  /** Connections that it refused. */
  readonly handshake_failures?: number;
  /** Its parked pops. */
  readonly waker: WakerFigures;
}

/** A message to push. */
export interface PushedMessage {
  /** The queue. */
  readonly queue: string;
  /** Its payload. */
  readonly data: unknown;
}

/** A message that a pop took. */
export interface PoppedMessage {
  /** Its payload. */
  readonly data: unknown;
  /** The producer's name for it. */
  readonly transactionId: string;
  /** The partition that it came from. */
  readonly partitionId: string;
  /** The lease that holds it. */
  readonly leaseId: string;
}

/** How long a call may take beyond what it waits for, in milliseconds. */
const CALL_MS_MAX = 10_000;

/** How long a pop waits, in milliseconds. */
const POP_WAIT_MS = 20_000;

/** Talks to one replica by its HTTP API. Every call ends, and rejects as soon as the signal aborts. */
export class ReplicaClient {
  /** `http://127.0.0.1:port`, without a slash at its end. */
  readonly url: string;

  /** Needs no connection yet. */
  constructor(url: string) {
    this.url = url;
  }

  /** Resolves to undefined where the replica and its database answer, else to what is wrong. */
  async findAilment(signal: AbortSignal): Promise<string | undefined> {
    try {
      const response = await this.#fetch("/health", { signal });
      const text = await response.text();
      return response.ok ? undefined : `${response.status} ${text}`;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      return String(error);
    }
  }

  /** How it stands. */
  async stats(signal: AbortSignal): Promise<ReplicaStats> {
    return JSON.parse(await this.#text("/internal/api/shared-state/stats", { signal }));
  }

  /** Makes a queue. */
  async configure(queue: string, signal: AbortSignal): Promise<void> {
    await this.#text("/api/v1/configure", { signal, body: { queue } });
  }

  /** Pushes one message; it must be stored. */
  async push({ queue, data }: PushedMessage, signal: AbortSignal): Promise<void> {
    const body = { items: [{ queue, payload: data }] };
    const [item] = JSON.parse(await this.#text("/api/v1/push", { signal, body }));
    if (item?.status !== "queued") {
      throw new DemoFailure(`a push to ${this.url} was answered ${JSON.stringify(item)}`);
    }
  }

  /** Takes one message, and waits for it; it must come. */
  async pop(queue: string, signal: AbortSignal): Promise<PoppedMessage> {
    const path = `/api/v1/pop/queue/${queue}?batch=1&wait=true&timeout=${POP_WAIT_MS}`;
    const text = await this.#text(path, { signal, waitMs: POP_WAIT_MS });
    if (text === "") throw new DemoFailure(`a pop on ${this.url} found nothing`);
    const { messages } = JSON.parse(text);
    return messages[0];
  }

  /** Completes a message; it must take effect. */
  async ack(message: PoppedMessage, signal: AbortSignal): Promise<void> {
    const { transactionId, partitionId, leaseId } = message;
    const body = { transactionId, partitionId, leaseId };
    const [outcome] = JSON.parse(await this.#text("/api/v1/ack", { signal, body }));
    if (outcome?.success !== true || outcome.leaseReleased !== true) {
      throw new DemoFailure(`an ack to ${this.url} was answered ${JSON.stringify(outcome)}`);
    }
  }

  async #text(path: string, request: ClientRequest): Promise<string> {
    try {
      const response = await this.#fetch(path, request);
      const text = await response.text();
      if (response.ok) return text;
      throw new DemoFailure(`${this.url}${path} was answered ${response.status} ${text}`);
    } catch (error) {
      if (request.signal.aborted) throw request.signal.reason;
      if (error instanceof DemoFailure) throw error;
      throw new DemoFailure(`${this.url}${path} failed: ${error}`, { cause: error });
    }
  }

  #fetch(path: string, { signal, body, waitMs = 0 }: ClientRequest): Promise<Response> {
    return fetch(this.url + path, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(waitMs + CALL_MS_MAX)]),
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
  }
}

interface ClientRequest {
  readonly signal: AbortSignal;
  /** Posted as JSON. */
  readonly body?: unknown;
  /** How long the replica may let it wait, in milliseconds. */
  readonly waitMs?: number;
}
