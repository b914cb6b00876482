import * as v from "valibot";
import { tenantOf } from "../tenancy.ts";
import { QUEUE_MODE } from "../waker.ts";
import { ApiError } from "./api_error.ts";
import { check, name, nameOrEmpty, queryBoolean, queryInteger } from "./input.ts";
import type { App, HttpParts, RouteContext } from "./parts.ts";
import { boundPop, popReplyText } from "./pop_reply.ts";
import { subscriptionFrom, subscriptionMode } from "./subscription.ts";

const INT32_MAX = 2_147_483_647;

const pathSchema = v.object({ queue: name, partition: v.optional(name) });

const querySchema = v.object({
  batch: queryInteger({ min: 1, max: 10_000, fallback: 200 }),
  partitions: queryInteger({ min: 1, max: INT32_MAX, fallback: 1 }),
  autoAck: queryBoolean,
  wait: queryBoolean,
  timeout: queryInteger({ min: 0, max: 300_000, fallback: 30_000 }),
  leaseSeconds: queryInteger({ min: 1, max: INT32_MAX, fallback: undefined }),
  consumerGroup: v.optional(nameOrEmpty, ""),
  subscriptionMode,
  subscriptionFrom,
});

const text = v.optional(nameOrEmpty, "");

const discoverySchema = v.object({ namespace: text, task: text });

/** The pops of a queue, of one partition of it, and of the queues of a namespace or a task. */
export function addPopRoutes(app: App, parts: HttpParts): void {
  const ofQueue = (context: RouteContext) => {
    const { queue, partition } = check(pathSchema, context.req.param());
    return pop(context, parts, partition === undefined ? { queue } : { queue, partition });
  };
  app.get("/api/v1/pop/queue/:queue", ofQueue);
  app.get("/api/v1/pop/queue/:queue/partition/:partition", ofQueue);
  app.get("/api/v1/pop", (context) => {
    const { namespace, task } = check(discoverySchema, context.req.query());
    if (namespace === "" && task === "") {
      throw new ApiError(400, "namespace: is required, unless a task is given");
    }
    return pop(context, parts, {
      ...(namespace === "" ? {} : { namespace }),
      ...(task === "" ? {} : { task }),
    });
  });
}

/** What a pop takes from. */
type Source =
  | { readonly queue: string; readonly partition?: string }
  | { readonly namespace?: string; readonly task?: string };

async function pop(
  context: RouteContext,
  { pops, gate, replyBytesMax, defaultSubscriptionMode = "new" }: HttpParts,
  source: Source,
): Promise<Response> {
  gate.requireOpen();
  const query = check(querySchema, context.req.query());
  const { autoAck, leaseSeconds, partitions, wait, timeout } = query;
  const consumerGroup = query.consumerGroup || QUEUE_MODE;
  const tenant = tenantOf(context);
  const popped = await pops.pop({
    tenant,
    query: {
      ...source,
      ...boundPop(query.batch, replyBytesMax, { group: consumerGroup }),
      partitions,
      autoAck,
      consumerGroup,
      start: query.subscriptionFrom ?? query.subscriptionMode ?? defaultSubscriptionMode,
      ...(leaseSeconds === undefined ? {} : { leaseSeconds }),
    },
    waitMs: wait ? timeout : 0,
    signal: context.req.raw.signal,
  });
  if (popped === undefined) return context.body(null, 204);
  pops.watchDelivery(tenant, popped, context.env.delivery.completed);
  return context.body(popReplyText(popped), 200, { "content-type": "application/json" });
}
