import {
  type AckCall,
  type AckOutcome,
  type AckStatus,
  type Call,
  History,
  type PushStatus,
  type Setting,
} from "../history.ts";

/** The setting of the histories below. */
export const SETTING: Setting = {
  leaseMs: 1000,
  retryDelayMs: 100,
  toleranceMs: 5,
  groups: new Map([["g", "all"], ["h", "all"]]),
};

/** An item of an ack: completed, where it is a transaction alone. */
type AckItem = string | readonly [transaction: string, status: AckStatus];

/** A history told by hand, in the partition `p` unless said otherwise. Each step takes 1 ms. */
export class ToldHistory {
  #ms = 0;
  readonly #history = new History(() => this.#ms++);

  get events() {
    return this.#history.events;
  }

  /** Lets time pass. */
  pass(ms: number): this {
    this.#ms += ms;
    return this;
  }

  /** A call that is not answered yet. */
  send(request: Call, replica = "A"): number {
    return this.#history.send(replica, request);
  }

  lose(call: number): this {
    this.#history.lose(call);
    return this;
  }

  outage(begins: boolean): this {
    this.#history.noteOutage(begins);
    return this;
  }

  report(text: string): this {
    this.#history.report(text);
    return this;
  }

  sendPush(transactions: string, { replica = "A", partition = "p" } = {}): number {
    const items = transactions.split(" ").map((transaction) => ({ transaction, partition }));
    return this.send({ kind: "push", items }, replica);
  }

  answerPush(call: number, ...statuses: PushStatus[]): this {
    this.#history.answer(call, { kind: "push", statuses });
    return this;
  }

  push(
    transactions: string,
    { status = "queued", ...rest }: { status?: PushStatus; replica?: string; partition?: string } =
      {},
  ): this {
    const statuses = transactions.split(" ").map(() => status);
    return this.answerPush(this.sendPush(transactions, rest), ...statuses);
  }

  /** A batch; none where `transactions` is empty. */
  answerPop(
    call: number,
    lease: string,
    transactions: string,
    { partition = "p", ids = "" } = {},
  ): this {
    const messages = transactions.split(" ").filter(Boolean).map((transaction) => ({
      id: `${transaction}${ids}`,
      transaction,
    }));
    const batches = messages.length === 0 ? [] : [{ partition, leaseId: lease, messages }];
    this.#history.answer(call, { kind: "pop", batches });
    return this;
  }

  pop(
    group: string,
    lease: string,
    transactions: string,
    options: { partition?: string; ids?: string } = {},
  ): this {
    return this.answerPop(this.send({ kind: "pop", group }), lease, transactions, options);
  }

  sendAck(leaseId: string, ...items: AckItem[]): number {
    return this.send({ kind: "ack", leaseId, items: items.map(toItem) });
  }

  answerAck(call: number, ...outcomes: Partial<AckOutcome>[]): this {
    this.#history.answer(call, {
      kind: "ack",
      outcomes: outcomes.map((outcome) => ({ success: true, dlq: false, ...outcome })),
    });
    return this;
  }

  /** An ack that succeeds; what says `dlq` is dead-lettered. */
  ack(leaseId: string, ...items: AckItem[]): this {
    const outcomes = items.map((item) => ({ dlq: toItem(item).status === "dlq" }));
    return this.answerAck(this.sendAck(leaseId, ...items), ...outcomes);
  }

  /** An ack that is refused. */
  refuseAck(leaseId: string, ...items: AckItem[]): this {
    const outcomes = items.map(() => ({ success: false }));
    return this.answerAck(this.sendAck(leaseId, ...items), ...outcomes);
  }

  extend(leaseId: string, seconds: number, success = true): this {
    const call = this.send({ kind: "extend", leaseId, seconds });
    this.#history.answer(call, { kind: "extend", success });
    return this;
  }

  /** Gives a group the messages, and completes them. */
  consume(group: string, transactions: string, { partition = "p" } = {}): this {
    const lease = `${group}-${partition}-${transactions}`;
    return this.pop(group, lease, transactions, { partition }).ack(
      lease,
      ...transactions.split(" "),
    );
  }
}

function toItem(item: AckItem): AckCall["items"][number] {
  return typeof item === "string"
    ? { transaction: item, status: "completed" }
    : { transaction: item[0], status: item[1] };
}
