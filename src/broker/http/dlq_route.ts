import * as v from "valibot";
import type { DeadLetter } from "../store/store.ts";
import { tenantOf } from "../tenancy.ts";
import { ApiError } from "./api_error.ts";
import { check, name, optionalName, queryInteger } from "./input.ts";
import type { App, HttpParts } from "./parts.ts";
import { queryTime } from "./query_time.ts";

const schema = v.object({
  queue: name,
  consumerGroup: optionalName,
  partition: optionalName,
  from: queryTime,
  to: queryTime,
  limit: queryInteger({ min: 0, max: 10_000, fallback: 100 }),
  offset: queryInteger({ min: 0, max: Number.MAX_SAFE_INTEGER, fallback: 0 }),
});

/**
 * `GET /api/v1/dlq`. The reply stops at the greatest body, never below one message; who turns pages by
 * the number of messages that came misses none.
 */
export function addDlqRoute(app: App, { store, gate, upkeep, replyBytesMax }: HttpParts): void {
  app.get("/api/v1/dlq", async (context) => {
    gate.requireOpen();
    const { consumerGroup, partition, from, to, ...query } = check(schema, context.req.query());
    const page = await store.deadLetters(tenantOf(context), {
      ...query,
      ...(consumerGroup === undefined ? {} : { consumerGroup }),
      ...(partition === undefined ? {} : { partition }),
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
      bytesMax: replyBytesMax,
    });
    if (page === undefined) {
      throw new ApiError(404, `queue: there is no queue ${JSON.stringify(query.queue)}`);
    }
    const texts: string[] = [];
    for (const letter of page.messages) {
      const { payload, encrypted } = letter;
      const data = encrypted ? await upkeep.payloads.open(payload) : payload;
      texts.push(letterText(query.queue, letter, data));
    }
    const body = `{"messages":[${texts.join(",")}],"total":${page.total}}`;
    return context.body(body, 200, { "content-type": "application/json" });
  });
}

/** A dead letter as JSON text, in which the payload stands as the text that it is. */
function letterText(queue: string, letter: DeadLetter, data: string): string {
  const { id, transactionId, partitionId, partition, consumerGroup } = letter;
  const { error: errorMessage = null, retryCount, createdAt, failedAt } = letter;
  const head = JSON.stringify({ id, transactionId, partitionId, partition, queue, consumerGroup });
  const tail = JSON.stringify({ errorMessage, retryCount, createdAt, failedAt });
  return `${head.slice(0, -1)},"data":${data},${tail.slice(1)}`;
}
