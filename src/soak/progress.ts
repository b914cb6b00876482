import type { AckCall, AckOutcome, Batch, PushStatus } from "./history.ts";

/** How far a soak has come. It is for deciding when to stop, and for people; the checker has its own view. */
export class Progress {
  /** Pushed messages by answer. */
  readonly pushes = { queued: 0, buffered: 0, duplicate: 0, failed: 0 };
  /** Calls whose outcome stayed open, and those answered 503. */
  readonly lost = { push: 0, pop: 0, ack: 0, extend: 0 };
  readonly refused = { push: 0, pop: 0, ack: 0, extend: 0 };
  /** Messages that were delivered, and how many of them not for the first time. */
  deliveries = 0;
  redeliveries = 0;
  /** Messages that were dead-lettered. */
  dead = 0;
  /** What was done to the replicas and to PostgreSQL. */
  kills = 0;
  freezes = 0;
  isPostgresAway = false;
  flips = 0;
  readonly #accepted = new Set<string>();
  readonly #groups = new Map<string, GroupProgress>();
  readonly #now: () => number;

  /** Groups that get all messages are named at the start. */
  constructor(groups: Iterable<string>, now: () => number) {
    this.#now = now;
    for (const group of groups) this.#groups.set(group, new GroupProgress(true));
  }

  /** How many messages were accepted. */
  get accepted(): number {
    return this.#accepted.size;
  }

  /** How many of them the slowest group is not done with, as far as is known. */
  get backlog(): number {
    return Math.max(...[...this.done.values()].map((count) => this.accepted - count));
  }

  /** How many each group is done with that is to get all. */
  get done(): ReadonlyMap<string, number> {
    const groups = [...this.#groups].filter(([, { getsAll }]) => getsAll);
    return new Map(groups.map(([group, { done }]) => [group, done.size]));
  }

  /** A push was answered. */
  notePush(transactions: readonly string[], statuses: readonly PushStatus[]): void {
    transactions.forEach((transaction, i) => {
      this.pushes[statuses[i]!]++;
      if (statuses[i] !== "failed") this.#accepted.add(transaction);
    });
  }

  /** A group got a batch. */
  noteBatch(group: string, { messages }: Batch): void {
    const of = this.#of(group);
    of.activeAt = this.#now();
    for (const { transaction } of messages) {
      this.deliveries++;
      if (of.seen.has(transaction)) this.redeliveries++;
      of.seen.add(transaction);
    }
  }

  /** An ack was answered. Completions above what was given back come again. */
  noteAck(group: string, items: AckCall["items"], outcomes: readonly AckOutcome[]): void {
    const of = this.#of(group);
    of.activeAt = this.#now();
    let isGiven = false;
    items.forEach(({ transaction, status }, i) => {
      const { success, dlq } = outcomes[i]!;
      if (!success) return;
      if (dlq) this.dead++;
      if (status !== "completed" && !dlq) isGiven = true;
      if (dlq || (status === "completed" && !isGiven)) of.done.add(transaction);
    });
  }

  /** Whether a group is done with everything, or has got nothing for `idleMs` milliseconds. */
  isDrained(group: string, idleMs: number): boolean {
    const { done, activeAt, getsAll } = this.#of(group);
    const isDone = getsAll && [...this.#accepted].every((transaction) => done.has(transaction));
    return isDone || this.#now() - activeAt > idleMs;
  }

  /** Idleness counts from now on. */
  restartIdleness(): void {
    for (const each of this.#groups.values()) each.activeAt = this.#now();
  }

  #of(group: string): GroupProgress {
    const found = this.#groups.get(group) ?? new GroupProgress(false);
    this.#groups.set(group, found);
    return found;
  }
}

class GroupProgress {
  readonly seen = new Set<string>();
  readonly done = new Set<string>();
  activeAt = 0;
  /** Whether it is to get every message. */
  readonly getsAll: boolean;

  constructor(getsAll: boolean) {
    this.getsAll = getsAll;
  }
}
