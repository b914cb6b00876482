import * as v from "valibot";
import type { Ack, AckOutcome } from "../store/store.ts";
import { tenantOf } from "../tenancy.ts";
import { type BodyFormat, name, optionalText, parseBody } from "./input.ts";
import type { App, HttpParts, RouteContext } from "./parts.ts";
import { queueModeOnly } from "./pop_routes.ts";
import type { Shape } from "./raw_json.ts";

/** The most messages that one call can acknowledge. */
export const ACKS_MAX = 100_000;

/** The words that complete a message; anything unknown counts as a failure. */
const STATUSES: ReadonlyMap<string, Ack["status"]> = new Map([
  ["completed", "completed"],
  ["success", "completed"],
  ["acked", "completed"],
  ["ok", "completed"],
  ["retry", "retry"],
  ["dlq", "dlq"],
]);

const ack = v.object({
  transactionId: name,
  partitionId: name,
  status: optionalText,
  consumerGroup: queueModeOnly,
  leaseId: optionalText,
  error: optionalText,
}, "must be an object");

const ACK_SHAPE: Shape = {
  members: {
    transactionId: "scalar",
    partitionId: "scalar",
    status: "scalar",
    consumerGroup: "scalar",
    leaseId: "scalar",
    error: "scalar",
  },
};

const batch = v.object({
  consumerGroup: queueModeOnly,
  acknowledgments: v.array(ack, "must be an array"),
}, "must be an object");

const ONE: BodyFormat<typeof ack> = { shape: ACK_SHAPE, schema: ack };

const BATCH: BodyFormat<typeof batch> = {
  shape: {
    members: {
      consumerGroup: "scalar",
      acknowledgments: { countMax: ACKS_MAX, elements: ACK_SHAPE },
    },
  },
  schema: batch,
};

/** `POST /api/v1/ack` and `POST /api/v1/ack/batch`. */
export function addAckRoutes(app: App, parts: HttpParts): void {
  app.post(
    "/api/v1/ack",
    (context) => reply(context, parts, (body) => [parseBody(body, ONE)]),
  );
  app.post(
    "/api/v1/ack/batch",
    (context) => reply(context, parts, (body) => parseBody(body, BATCH).acknowledgments),
  );
}

async function reply(
  context: RouteContext,
  { acks, gate, metrics, bodies }: HttpParts,
  parse: (body: string) => v.InferOutput<typeof ack>[],
): Promise<Response> {
  gate.requireOpen();
  const tenant = tenantOf(context);
  return await bodies.read(context.req.raw, async (body) => {
    const items = parse(body).map(toAck);
    const outcomes = await acks.ack(tenant, items);
    metrics.countAcks(outcomes);
    return context.json(outcomes.map((outcome, i) => toReply(outcome, i, items[i]!)));
  });
}

function toAck(input: v.InferOutput<typeof ack>): Ack {
  const { transactionId, partitionId, status, leaseId, error } = input;
  return {
    transactionId,
    partitionId,
    status: status === undefined ? "completed" : STATUSES.get(status) ?? "failed",
    ...(leaseId === undefined ? {} : { leaseId }),
    ...(error === undefined ? {} : { error }),
  };
}

function toReply(outcome: AckOutcome, index: number, { transactionId }: Ack) {
  const { success, error = null, leaseReleased, dlq, noop } = outcome;
  return { index, transactionId, success, error, leaseReleased, dlq, noop };
}
