/**
 * What clients of replicas saw: every call with its answer, in the order in which they saw it.
 *
 * @module
 */

/** Messages that go to one partition, in their order. Each is named by its transaction. */
export interface PushCall {
  readonly kind: "push";
  readonly items: readonly { readonly partition: string; readonly transaction: string }[];
}

/** A pop of a consumer group. */
export interface PopCall {
  readonly kind: "pop";
  readonly group: string;
}

/** What an ack says of a message. */
export type AckStatus = "completed" | "retry" | "failed" | "dlq";

/** An ack of messages of one batch. */
export interface AckCall {
  readonly kind: "ack";
  readonly leaseId: string;
  readonly items: readonly { readonly transaction: string; readonly status: AckStatus }[];
}

/** A lease that is to be made longer. */
export interface ExtendCall {
  readonly kind: "extend";
  readonly leaseId: string;
  readonly seconds: number;
}

/** What a client asks a replica. */
export type Call = PushCall | PopCall | AckCall | ExtendCall;

/** One partition's messages, as a pop was answered. */
export interface Batch {
  readonly partition: string;
  readonly leaseId: string;
  readonly messages: readonly { readonly id: string; readonly transaction: string }[];
}

/** What became of one message of a push. */
export type PushStatus = "queued" | "buffered" | "duplicate" | "failed";

/** What became of one message of an ack. */
export interface AckOutcome {
  readonly success: boolean;
  readonly dlq: boolean;
}

/** What a replica answered. A pop that found nothing has no batches. */
export type Answer =
  | { readonly kind: "push"; readonly statuses: readonly PushStatus[] }
  | { readonly kind: "pop"; readonly batches: readonly Batch[] }
  | { readonly kind: "ack"; readonly outcomes: readonly AckOutcome[] }
  | { readonly kind: "extend"; readonly success: boolean };

/** One thing that a client saw. `at` is its time by one clock for all, in milliseconds. */
export type SoakEvent =
  /** A call begins. */
  | {
    readonly type: "sent";
    readonly at: number;
    readonly call: number;
    readonly replica: string;
    readonly request: Call;
  }
  /** It is answered. */
  | {
    readonly type: "answered";
    readonly at: number;
    readonly call: number;
    readonly answer: Answer;
  }
  /** Its outcome stays open: the connection broke, or the answer was that PostgreSQL is away. */
  | { readonly type: "lost"; readonly at: number; readonly call: number }
  /** PostgreSQL cannot be reached any more, or is about to be back. */
  | { readonly type: "outage"; readonly at: number; readonly begins: boolean }
  /** Something that never may happen, and needs no rule to be seen. */
  | { readonly type: "trouble"; readonly at: number; readonly text: string };

/** How a queue and its consumers are set up, as far as the rules depend on it. */
export interface Setting {
  /** For how long a batch is leased, in milliseconds. */
  readonly leaseMs: number;
  /** For how long a partition waits after a message has failed, in milliseconds. */
  readonly retryDelayMs: number;
  /** How much the clocks of clients and PostgreSQL may differ over the life of a lease. */
  readonly toleranceMs: number;
  /** The groups, queue mode included, and whether they start with the first message. */
  readonly groups: ReadonlyMap<string, "all" | "new">;
}

/** Collects what is seen. */
export class History {
  /** All of it, the oldest first. */
  readonly events: SoakEvent[] = [];
  readonly #now: () => number;
  #calls = 0;

  /** Reads the time, in milliseconds, from `now`. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** A call begins. Returns its number. */
  send(replica: string, request: Call): number {
    const call = ++this.#calls;
    this.events.push({ type: "sent", at: this.#now(), call, replica, request });
    return call;
  }

  /** A call is answered. */
  answer(call: number, answer: Answer): void {
    this.events.push({ type: "answered", at: this.#now(), call, answer });
  }

  /** Nobody knows what became of a call. */
  lose(call: number): void {
    this.events.push({ type: "lost", at: this.#now(), call });
  }

  /** PostgreSQL cannot be reached any more, or is about to be back. */
  noteOutage(begins: boolean): void {
    this.events.push({ type: "outage", at: this.#now(), begins });
  }

  /** Something went wrong in itself. */
  report(text: string): void {
    this.events.push({ type: "trouble", at: this.#now(), text });
  }
}
