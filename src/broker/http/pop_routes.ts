import * as v from "valibot";
import { QUEUE_MODE } from "../waker.ts";
import { tenantOf } from "../tenancy.ts";
import { check, name, optionalText, queryBoolean, queryInteger } from "./input.ts";
import type { App, HttpParts, RouteContext } from "./parts.ts";
import { boundPop, popReplyText } from "./pop_reply.ts";

const INT32_MAX = 2_147_483_647;

/** A consumer group, as far as there are any: queue mode alone. */
export const queueModeOnly: v.GenericSchema<string | null | undefined, string | undefined> = v.pipe(
  optionalText,
  v.check(
    (group) => group === undefined || group === QUEUE_MODE,
    "consumer groups are not supported; leave it out for queue mode",
  ),
);

const pathSchema = v.object({ queue: name, partition: v.optional(name) });

const querySchema = v.object({
  batch: queryInteger({ min: 1, max: 10_000, fallback: 200 }),
  // An upper bound: one partition is claimed at a time.
  partitions: queryInteger({ min: 1, max: INT32_MAX, fallback: 1 }),
  autoAck: queryBoolean,
  wait: queryBoolean,
  timeout: queryInteger({ min: 0, max: 300_000, fallback: 30_000 }),
  leaseSeconds: queryInteger({ min: 1, max: INT32_MAX, fallback: undefined }),
  consumerGroup: queueModeOnly,
});

/** `GET /api/v1/pop/queue/:queue` and `GET /api/v1/pop/queue/:queue/partition/:partition`. */
export function addPopRoutes(app: App, parts: HttpParts): void {
  app.get("/api/v1/pop/queue/:queue", (context) => pop(context, parts));
  app.get("/api/v1/pop/queue/:queue/partition/:partition", (context) => pop(context, parts));
}

async function pop(
  context: RouteContext,
  { pops, gate, replyBytesMax }: HttpParts,
): Promise<Response> {
  gate.requireOpen();
  const { queue, partition } = check(pathSchema, context.req.param());
  const { batch: size, autoAck, leaseSeconds, wait, timeout } = check(
    querySchema,
    context.req.query(),
  );
  const tenant = tenantOf(context);
  const batch = await pops.pop({
    tenant,
    query: {
      queue,
      ...(partition === undefined ? {} : { partition }),
      ...boundPop(size, replyBytesMax),
      autoAck,
      ...(leaseSeconds === undefined ? {} : { leaseSeconds }),
    },
    waitMs: wait ? timeout : 0,
    signal: context.req.raw.signal,
  });
  if (batch === undefined) return context.body(null, 204);
  pops.watchDelivery(tenant, batch, context.env.delivery.completed);
  return context.body(popReplyText(queue, batch), 200, { "content-type": "application/json" });
}
