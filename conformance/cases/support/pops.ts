import type { CaseContext, PushItem } from "../../context.ts";
import { expectThat } from "../../harness/failure.ts";
import type { HttpReply } from "../../harness/http.ts";
import type { TargetNode } from "../../harness/target_node.ts";

/** What a pop asks for. */
export interface PopRequest {
  /** The queue. */
  readonly queue: string;
  /** One partition of it; all where it is left out. */
  readonly partition?: string;
  /** The consumer group; queue mode where it is left out. */
  readonly consumerGroup?: string;
  /** The tenant, as the header names it. */
  readonly tenant?: string;
  /** How many messages at most. */
  readonly batch?: number;
  /** Whether to wait, and for how long, in milliseconds. */
  readonly waitMs?: number;
}

/** A pop that waits. */
export interface ParkedPop {
  /** Where. */
  readonly node: TargetNode;
  /** What it asked for. */
  readonly request: PopRequest;
  /** Resolves to the reply. */
  readonly reply: Promise<HttpReply>;
  /** The reply, once it has come. */
  readonly settled: HttpReply | undefined;
}

/** How long a parked pop waits, in milliseconds: longer than any case looks at it. */
const PARKED_MS = 60_000;

/** How often a scene may be set anew where the pop found the message by its own first look. */
const ATTEMPTS_MAX = 5;

/** Pops and gives the reply. */
export function pop(
  context: CaseContext,
  { node, ...request }: PopRequest & { node: TargetNode },
): Promise<HttpReply> {
  const { queue, partition, consumerGroup, tenant, batch, waitMs } = request;
  const query = new URLSearchParams({
    ...(batch === undefined ? {} : { batch: String(batch) }),
    ...(consumerGroup === undefined ? {} : { consumerGroup, subscriptionMode: "all" }),
    ...(waitMs === undefined ? {} : { wait: "true", timeout: String(Math.round(waitMs)) }),
  });
  const lane = partition === undefined ? "" : `/partition/${encodeURIComponent(partition)}`;
  const path = `/api/v1/pop/queue/${encodeURIComponent(queue)}${lane}`;
  return node.request(query.size === 0 ? path : `${path}?${query}`, {
    ...(tenant === undefined ? {} : { headers: { "x-queen-tenant": tenant } }),
    timeoutMs: (waitMs ?? 0) + 15_000,
    signal: context.signal,
  });
}

/**
 * Starts a pop that waits, and gives it the time in which two requests behind it are answered: so it
 * has looked once and is parked, as far as anybody outside can tell.
 */
export async function parkPop(
  context: CaseContext,
  node: TargetNode,
  request: PopRequest,
): Promise<ParkedPop> {
  const reply = pop(context, { node, waitMs: PARKED_MS, ...request });
  const parked = { node, request, reply, settled: undefined as HttpReply | undefined };
  // Whoever waits for it hears of an error; a case that ends before does not care.
  reply.then((settled) => parked.settled = settled, () => {});
  await lookTwice(context, node);
  return parked;
}

/**
 * Parks a pop on one node and then stores a message for it by another that cannot tell it: so the
 * pop waits beside its message until a frame wakes it.
 *
 * @param request What the pop asks for; the message goes to the same queue and partition.
 */
export async function parkBesideMessage(
  context: CaseContext,
  { judged, silent, ...request }: PopRequest & { judged: TargetNode; silent: TargetNode },
): Promise<ParkedPop> {
  const { queue, partition, tenant } = request;
  const item: PushItem = { queue, ...(partition === undefined ? {} : { partition }) };
  for (let attempt = 1;; attempt++) {
    const parked = await parkPop(context, judged, request);
    await context.push(silent, [item], tenant === undefined ? {} : { tenant });
    await lookTwice(context, judged);
    if (!parked.settled) return parked;
    expectThat(
      attempt < ATTEMPTS_MAX,
      `a pop with wait=true on node ${judged.name} to wait where its queue is empty, and not to hear of a push on node ${silent.name}, which has no peers`,
      `${ATTEMPTS_MAX} times it was answered before any frame was sent: ${parked.settled.status} ${parked.settled.text}`,
    );
  }
}

/**
 * Waits until a parked pop brings a message.
 *
 * @param expected What should happen, to be read after "expected".
 */
export async function expectPopped(
  context: CaseContext,
  parked: ParkedPop,
  expected: string,
): Promise<unknown[]> {
  const reply = await context.within(expected, parked.reply);
  const messages = messagesOf(reply);
  expectThat(messages.length > 0, expected, `${reply.status} ${reply.text}`);
  return messages;
}

/** States that a pop still waits. Something that was sent behind must have happened before. */
export function expectParked(parked: ParkedPop, why: string): void {
  const { settled, request } = parked;
  expectThat(
    settled === undefined,
    `the pop of queue "${request.queue}" to wait on: ${why}`,
    `it was answered: ${settled?.status} ${settled?.text}`,
  );
}

/** The messages of a pop's reply; none where it was answered empty. */
export function messagesOf({ status, json, text }: HttpReply): PoppedMessage[] {
  expectThat(
    status === 200 || status === 204,
    "a pop to be answered 200 or 204",
    `${status} ${text}`,
  );
  const messages = (json as { messages?: unknown } | undefined)?.messages;
  return Array.isArray(messages) ? messages : [];
}

/** A message of a pop's reply. */
export interface PoppedMessage {
  /** What was pushed. */
  readonly data: unknown;
  /** Its transactionId. */
  readonly transactionId: string;
  /** Its partition's id. */
  readonly partitionId: string;
  /** Its lease's id. */
  readonly leaseId: string;
  /** Its partition's name. */
  readonly partition: string;
}

/** Makes two requests, one after the other: whatever a node had in its hands has had its turn by then. */
export async function lookTwice(context: CaseContext, node: TargetNode): Promise<void> {
  for (let i = 0; i < 2; i++) {
    await pop(context, { node, queue: context.uniqueName("nothing") });
  }
}
