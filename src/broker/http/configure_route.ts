import * as v from "valibot";
import { RawJson } from "./raw_json.ts";
import { NO_KEY } from "../payloads.ts";
import { tenantOf } from "../tenancy.ts";
import { ApiError } from "./api_error.ts";
import { type BodyFormat, name, nameOrEmpty, parseBody } from "./input.ts";
import type { App, HttpParts } from "./parts.ts";

/** The longest that the options' text may be, since all of it becomes values. */
const OPTIONS_LENGTH_MAX = 65_536;

const INT32_MAX = 2_147_483_647;

/** An option that is left out, or null, keeps its value. */
function option<Output>(
  schema: v.GenericSchema<Output>,
): v.GenericSchema<Output | null | undefined> {
  return v.nullish(schema);
}

function integer(min: number) {
  const message = `must be a whole number from ${min} to ${INT32_MAX}`;
  const schema = v.pipe(
    v.number(message),
    v.check((number) => Number.isInteger(number) && number >= min && number <= INT32_MAX, message),
  );
  return option(schema);
}

/** The options that have an effect; any other is kept as it is given. */
const options = v.looseObject({
  leaseTime: integer(1),
  retryLimit: integer(0),
  retryDelay: integer(0),
  dlqAfterMaxRetries: option(v.boolean("must be true or false")),
  dedupWindowSeconds: integer(0),
  encryptionEnabled: option(v.boolean("must be true or false")),
  delayedProcessing: integer(0),
  windowBuffer: integer(0),
  retentionSeconds: integer(0),
  completedRetentionSeconds: integer(0),
}, "must be an object");

const KNOWN = new Set(Object.keys(options.entries));

const text = v.nullish(nameOrEmpty);

const schema = v.object({
  queue: name,
  namespace: text,
  task: text,
  options: v.optional(v.pipe(
    v.instance(RawJson),
    v.check(
      ({ text }) => text.length <= OPTIONS_LENGTH_MAX,
      `must be at most ${OPTIONS_LENGTH_MAX} characters of JSON`,
    ),
    v.transform(({ text }) => JSON.parse(text)),
    v.nullish(options),
  )),
}, "must be an object");

const FORMAT: BodyFormat<typeof schema> = {
  shape: { members: { queue: "scalar", namespace: "scalar", task: "scalar", options: "raw" } },
  schema,
};

const queueSchema = v.object({ queue: v.optional(v.unknown()) }, "must be an object");

const QUEUE_FORMAT: BodyFormat<typeof queueSchema> = {
  shape: { members: { queue: "scalar" } },
  schema: queueSchema,
};

/** `POST /api/v1/configure`. */
export function addConfigureRoute(
  app: App,
  { store, gate, upkeep, bodies, broadcast, waker }: HttpParts,
): void {
  app.post("/api/v1/configure", async (context) => {
    gate.requireOpen();
    const tenant = tenantOf(context);
    return await bodies.read(context.req.raw, async (body) => {
      const { queue, namespace, task, options } = parse(body);
      if (options?.encryptionEnabled && !upkeep.payloads.hasKey) {
        throw new ApiError(400, `options.encryptionEnabled: ${NO_KEY}`);
      }
      const settings = await store.configure(tenant, {
        queue,
        ...(typeof namespace === "string" ? { namespace } : {}),
        ...(typeof task === "string" ? { task } : {}),
        ...(options == null ? {} : { options: withoutNulls(options) }),
      }).catch((error) => {
        // Where the outcome is unknown, to forget what still holds does no harm.
        upkeep.noteChanged(tenant, queue);
        throw error;
      });
      upkeep.noteConfigured(tenant, queue);
      broadcast({ type: "queue_config_set", queue, tenant });
      waker.wakeDiscoveries(tenant);
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

/** Leaves out the known options that are null: they are not mentioned. */
function withoutNulls(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(options).filter(([name, value]) => value != null || !KNOWN.has(name)),
  );
}
