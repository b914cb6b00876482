import * as v from "valibot";
import type { PushDraft } from "../push_service.ts";
import { tenantOf } from "../tenancy.ts";
import { type BodyFormat, name, parseBody } from "./input.ts";
import type { App, HttpParts } from "./parts.ts";
import { RawJson, type Shape } from "./raw_json.ts";

/** The most messages that one push can bring. */
export const PUSH_ITEMS_MAX = 100_000;

/** The partition of a message that names none. */
const DEFAULT_PARTITION = "Default";

/** A message to push. */
export const itemSchema = v.object({
  queue: name,
  partition: v.nullish(name),
  transactionId: v.nullish(name),
  payload: v.instance(RawJson, "must be JSON"),
}, "must be an object");

/** What of messages to push is read. */
export const ITEMS_SHAPE: Shape = {
  countMax: PUSH_ITEMS_MAX,
  elements: {
    members: { queue: "scalar", partition: "scalar", transactionId: "scalar", payload: "raw" },
  },
};

const schema = v.object({ items: v.array(itemSchema, "must be an array") }, "must be an object");

const FORMAT: BodyFormat<typeof schema> = { shape: { members: { items: ITEMS_SHAPE } }, schema };

/** The message that a client means. */
export function toDraft(
  { queue, partition, transactionId, payload }: v.InferOutput<typeof itemSchema>,
): PushDraft {
  return {
    queue,
    partition: partition ?? DEFAULT_PARTITION,
    transactionId: transactionId ?? undefined,
    payload: payload.text,
  };
}

/** `POST /api/v1/push`. */
export function addPushRoute(app: App, { pushes, metrics, bodies }: HttpParts): void {
  app.post("/api/v1/push", async (context) => {
    const tenant = tenantOf(context);
    return await bodies.read(context.req.raw, async (body) => {
      const { items } = parseBody(body, FORMAT);
      const stop = metrics.startPush();
      const receipts = await pushes.push(tenant, items.map(toDraft));
      stop();
      metrics.countPush(receipts);
      const reply = receipts.map(({ messageId, transactionId, status, error }, index) => ({
        index,
        message_id: messageId,
        transaction_id: transactionId,
        queueName: items[index]!.queue,
        status,
        ...(error === undefined ? {} : { error }),
      }));
      return context.json(reply, 201);
    });
  });
}
