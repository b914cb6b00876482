import type { Popped } from "../pop_service.ts";
import type { PoppedBatch } from "../store/store.ts";

/**
 * The reply to a pop as JSON text. The payloads stand in it as the texts that they are: none of them
 * is ever parsed. Each message says where it comes from, and the reply what comes first.
 */
export function popReplyText(popped: Popped): string {
  const { queue, consumerGroup, others } = popped;
  const batches = [popped, ...others];
  const texts = batches.flatMap((batch) => {
    const place = placeText(batch, consumerGroup);
    return batch.messages.map(({ id, transactionId, payload, createdAt }) =>
      `{"id":${JSON.stringify(id)},"transactionId":${JSON.stringify(transactionId)}` +
      `,"traceId":null,"data":${payload},"producerSub":null` +
      `,"createdAt":${JSON.stringify(createdAt)},${place}}`
    );
  });
  return `{"success":true,"queue":${JSON.stringify(queue)},${placeText(popped, consumerGroup)}` +
    `,"messages":[${texts.join(",")}],"partitionsClaimed":${batches.length}}`;
}

/** The same in every message of a batch. */
function placeText(
  { partitionId, partition, leaseId = "" }: PoppedBatch,
  consumerGroup: string,
): string {
  return JSON.stringify({ partitionId, partition, leaseId, consumerGroup }).slice(1, -1);
}

/**
 * What a message takes in a reply beside its payload and its group, in bytes, at most: two names of
 * 512 bytes, of which every character may have to be escaped, and some 350 bytes of the rest.
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
export function boundPop(
  batch: number,
  replyBytesMax: number,
  { group }: { readonly group: string },
): PopBounds {
  const halfBytes = Math.floor(replyBytesMax / 2);
  const envelopeBytes = ENVELOPE_BYTES_MAX + new TextEncoder().encode(JSON.stringify(group)).length;
  // One envelope more, for the reply's own.
  const fitting = Math.floor(halfBytes / envelopeBytes) - 1;
  return { batch: Math.max(Math.min(batch, fitting), 1), bytesMax: Math.max(halfBytes, 1) };
}
