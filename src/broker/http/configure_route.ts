import * as v from "valibot";
import { tenantOf } from "../tenancy.ts";
import { ApiError } from "./api_error.ts";
import { type BodyFormat, name, parseBody } from "./input.ts";
import type { App, HttpParts } from "./parts.ts";

const text = v.nullish(v.string("must be a string"));
const number = v.optional(
  v.pipe(v.number("must be a number"), v.minValue(0, "must not be negative")),
);
const flag = v.optional(v.boolean("must be true or false"));

/** The options that have a meaning, by their types; any other is kept as it is given. */
const options = v.looseObject({
  leaseTime: number,
  retryLimit: number,
  retryDelay: number,
  dlqAfterMaxRetries: flag,
  dedupWindowSeconds: number,
  encryptionEnabled: flag,
  delayedProcessing: number,
  windowBuffer: number,
  retentionSeconds: number,
  completedRetentionSeconds: number,
}, "must be an object");

const schema = v.object({
  queue: name,
  namespace: text,
  task: text,
  options: v.nullish(options),
}, "must be an object");

const FORMAT: BodyFormat<typeof schema> = {
  shape: { members: { queue: "scalar", namespace: "scalar", task: "scalar", options: "value" } },
  schema,
};

const queueSchema = v.object({ queue: v.optional(v.unknown()) }, "must be an object");

const QUEUE_FORMAT: BodyFormat<typeof queueSchema> = {
  shape: { members: { queue: "scalar" } },
  schema: queueSchema,
};

/** `POST /api/v1/configure`. */
export function addConfigureRoute(app: App, { store, gate, bodies, broadcast }: HttpParts): void {
  app.post("/api/v1/configure", async (context) => {
    gate.requireOpen();
    const tenant = tenantOf(context);
    return await bodies.read(context.req.raw, async (body) => {
      const { queue, namespace, task, options } = parse(body);
      const settings = await store.configure(tenant, {
        queue,
        ...(typeof namespace === "string" ? { namespace } : {}),
        ...(typeof task === "string" ? { task } : {}),
        ...(options == null ? {} : { options }),
      });
      broadcast({ type: "queue_config_set", queue, tenant });
      return context.json({
        configured: true,
        queueId: settings.queueId,
        partitionId: null,
        queue,
        namespace: settings.namespace,
        task: settings.task,
        storage: "segments",
        options: settings.options,
      });
    });
  });
}

function parse(body: string): v.InferOutput<typeof schema> {
  // Clients know this one reply by its text.
  if (typeof parseBody(body, QUEUE_FORMAT).queue !== "string") {
    throw new ApiError(400, "queue is required");
  }
  return parseBody(body, FORMAT);
}
