import type { PoppedBatch } from "../store/store.ts";
import { QUEUE_MODE } from "../waker.ts";

/**
 * The reply to a pop as JSON text. The payloads stand in it as the texts that they are: none of them
 * is ever parsed.
 */
export function popReplyText(queue: string, batch: PoppedBatch): string {
  const { partition, partitionId, leaseId = "", messages } = batch;
  // The same in every message and in the reply itself.
  const place = JSON.stringify({ partitionId, partition, leaseId, consumerGroup: QUEUE_MODE })
    .slice(1, -1);
  const texts = messages.map(({ id, transactionId, payload, createdAt }) =>
    `{"id":${JSON.stringify(id)},"transactionId":${JSON.stringify(transactionId)}` +
    `,"traceId":null,"data":${payload},"producerSub":null` +
    `,"createdAt":${JSON.stringify(createdAt)},${place}}`
  );
  return `{"success":true,"queue":${JSON.stringify(queue)},${place}` +
    `,"messages":[${texts.join(",")}],"partitionsClaimed":1}`;
}

/**
 * What a message takes in a reply beside its payload, in bytes, at most: two names of 512 bytes, of
 * which every character may have to be escaped, and some 350 bytes of the rest.
 */
const ENVELOPE_BYTES_MAX = 2 * 2 * 512 + 400;

/** How much one pop takes at most. */
export interface PopBounds {
  /** In messages. */
  readonly batch: number;
  /** In bytes of payload, one message aside. */
  readonly bytesMax: number;
}

/**
 * Bounds a pop of `batch` messages so that its reply keeps to `replyBytesMax`, unless it holds a
 * single message: half of the reply is for payloads, and half for what goes around them.
 */
export function boundPop(batch: number, replyBytesMax: number): PopBounds {
  const halfBytes = Math.floor(replyBytesMax / 2);
  // One envelope more, for the reply's own.
  const fitting = Math.floor(halfBytes / ENVELOPE_BYTES_MAX) - 1;
  return { batch: Math.max(Math.min(batch, fitting), 1), bytesMax: Math.max(halfBytes, 1) };
}
