import * as v from "valibot";
import { tenantOf } from "../tenancy.ts";
import { type BodyFormat, name, parseBody } from "./input.ts";
import type { App, HttpParts } from "./parts.ts";
import { RawJson } from "./raw_json.ts";

/** The most messages that one push can bring. */
export const PUSH_ITEMS_MAX = 100_000;

/** The partition of a message that names none. */
const DEFAULT_PARTITION = "Default";

const schema = v.object({
  items: v.array(
    v.object({
      queue: name,
      partition: v.nullish(name),
      transactionId: v.nullish(name),
      payload: v.instance(RawJson, "must be JSON"),
    }, "must be an object"),
    "must be an array",
  ),
}, "must be an object");

const FORMAT: BodyFormat<typeof schema> = {
  shape: {
    members: {
      items: {
        countMax: PUSH_ITEMS_MAX,
        elements: {
          members: {
            queue: "scalar",
            partition: "scalar",
            transactionId: "scalar",
            payload: "raw",
          },
        },
      },
    },
  },
  schema,
};

/** `POST /api/v1/push`. */
export function addPushRoute(app: App, { pushes, metrics, bodies }: HttpParts): void {
  app.post("/api/v1/push", async (context) => {
    const tenant = tenantOf(context);
    return await bodies.read(context.req.raw, async (body) => {
      const { items } = parseBody(body, FORMAT);
      const stop = metrics.startPush();
      const receipts = await pushes.push(
        tenant,
        items.map(({ queue, partition, transactionId, payload }) => ({
          queue,
          partition: partition ?? DEFAULT_PARTITION,
          transactionId: transactionId ?? undefined,
          payload: payload.text,
        })),
      );
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
