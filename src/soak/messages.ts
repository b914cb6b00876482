import type { PushStatus, SoakEvent } from "./history.ts";

/** One attempt to push a message. */
export interface Attempt {
  readonly replica: string;
  /** The places of the events in the history; `answeredAt` only where there is an answer. */
  readonly sentAt: number;
  /** Its place in the push. */
  readonly item: number;
  answeredAt?: number;
  status?: PushStatus;
}

/** A message as its producer knows it. */
export interface KnownMessage {
  readonly partition: string;
  readonly transaction: string;
  readonly attempts: Attempt[];
  /** By the clock, when it was sent first. */
  readonly sentMs: number;
}

/** The messages of a history, by their transaction. */
export function messagesOf(events: readonly SoakEvent[]): Map<string, KnownMessage> {
  const messages = new Map<string, KnownMessage>();
  const attempts = new Map<number, Attempt[]>();
  events.forEach((event, index) => {
    if (event.type === "sent" && event.request.kind === "push") {
      const { call, replica, request, at } = event;
      attempts.set(
        call,
        request.items.map(({ partition, transaction }, item) => {
          const attempt = { replica, sentAt: index, item };
          const known = messages.get(transaction);
          if (known) known.attempts.push(attempt);
          else {
            messages.set(transaction, { partition, transaction, attempts: [attempt], sentMs: at });
          }
          return attempt;
        }),
      );
    } else if (event.type === "answered" && event.answer.kind === "push") {
      const { statuses } = event.answer;
      attempts.get(event.call)?.forEach((attempt, i) => {
        attempt.answeredAt = index;
        attempt.status = statuses[i]!;
      });
    }
  });
  return messages;
}

/** The attempt whose answer says that the message is kept, the first such; undefined if none does. */
export function acceptanceOf({ attempts }: KnownMessage): Required<Attempt> | undefined {
  return attempts.filter((attempt): attempt is Required<Attempt> =>
    attempt.status !== undefined && attempt.status !== "failed"
  ).sort((a, b) => a.answeredAt - b.answeredAt)[0];
}
