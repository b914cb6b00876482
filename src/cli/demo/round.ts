import { DemoFailure } from "./failure.ts";
import type { PoppedMessage } from "./replica_client.ts";
import type { DemoReplica } from "./replicas.ts";
import { pause, until } from "./wait.ts";

/** Who takes part in a round. */
export interface RoundOptions {
  /** A pop is parked here. */
  readonly consumer: DemoReplica;
  /** A message is pushed here. */
  readonly producer: DemoReplica;
  /** A queue that nobody else uses. */
  readonly queue: string;
  /** The push comes up to this long after the pop is seen parked, in milliseconds, at random. */
  readonly delayMsMax: number;
  /** Ends the round. */
  readonly signal: AbortSignal;
}

/** How long a round took. */
export interface Round {
  /** From the moment the push was sent to the moment the pop's reply had arrived, in milliseconds. */
  readonly replyMs: number;
  /** From the moment the push was sent to the moment it was answered, in milliseconds. */
  readonly pushMs: number;
}

/** How long a pop may take to be parked, in milliseconds. */
const PARK_MS_MAX = 5000;

/**
 * Parks a pop on one replica, waits until that one reports it parked, pushes a message on another and
 * takes the time until the pop is answered with it; then completes the message.
 */
export async function playRound(options: RoundOptions): Promise<Round> {
  const { consumer, producer, queue, delayMsMax } = options;
  const end = new AbortController();
  const signal = AbortSignal.any([options.signal, end.signal]);
  const data = { id: crypto.randomUUID() };
  try {
    let arrivedAt = 0;
    const reply = consumer.client.pop(queue, signal).then((message) => {
      arrivedAt = performance.now();
      return message;
    });
    await Promise.race([waitUntilParked(consumer, signal), reply.then(refuseEarlyReply)]);
    await pause(Math.random() * delayMsMax, signal);
    const sentAt = performance.now();
    const [message, pushMs] = await Promise.all([
      reply,
      producer.client.push({ queue, data }, signal).then(() => performance.now() - sentAt),
    ]);
    checkMessage(message, data);
    await consumer.client.ack(message, signal);
    return { replyMs: arrivedAt - sentAt, pushMs };
  } finally {
    // A pop that still waits is not to take the next round's message.
    end.abort();
  }
}

async function waitUntilParked({ name, client }: DemoReplica, signal: AbortSignal): Promise<void> {
  await until(`a pop is parked on ${name}`, async () => {
    const { waker } = await client.stats(signal);
    return waker.parked > 0 ? undefined : "none is";
  }, { timeoutMs: PARK_MS_MAX, everyMs: 1, signal });
}

function refuseEarlyReply(message: PoppedMessage): never {
  throw new DemoFailure(`a pop was answered before the push: ${JSON.stringify(message)}`);
}

function checkMessage(message: PoppedMessage, data: { readonly id: string }): void {
  const { id } = message.data as Partial<typeof data>;
  if (id !== data.id) throw new DemoFailure(`a pop was answered with ${id}, not with ${data.id}`);
}
