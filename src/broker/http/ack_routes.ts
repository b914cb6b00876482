import * as v from "valibot";
import type { Ack, AckOutcome } from "../store/store.ts";
import { tenantOf } from "../tenancy.ts";
import { ACK_MEMBERS, ackSchema, toAck } from "./ack_input.ts";
import { type BodyFormat, optionalName, parseBody } from "./input.ts";
import type { App, HttpParts, RouteContext } from "./parts.ts";

/** The most messages that one call can acknowledge. */
export const ACKS_MAX = 100_000;

const batch = v.object({
  consumerGroup: optionalName,
  acknowledgments: v.array(ackSchema, "must be an array"),
}, "must be an object");

const ONE: BodyFormat<typeof ackSchema> = { shape: { members: ACK_MEMBERS }, schema: ackSchema };

const BATCH: BodyFormat<typeof batch> = {
  shape: {
    members: {
      consumerGroup: "scalar",
      acknowledgments: { countMax: ACKS_MAX, elements: { members: ACK_MEMBERS } },
    },
  },
  schema: batch,
};

/** `POST /api/v1/ack` and `POST /api/v1/ack/batch`. */
export function addAckRoutes(app: App, parts: HttpParts): void {
  app.post(
    "/api/v1/ack",
    (context) => reply(context, parts, (body) => [toAck(parseBody(body, ONE))]),
  );
  app.post("/api/v1/ack/batch", (context) =>
    reply(context, parts, (body) => {
      const { acknowledgments, consumerGroup } = parseBody(body, BATCH);
      return acknowledgments.map((ack) => toAck(ack, consumerGroup));
    }));
}

async function reply(
  context: RouteContext,
  { acks, gate, metrics, bodies }: HttpParts,
  parse: (body: string) => Ack[],
): Promise<Response> {
  gate.requireOpen();
  const tenant = tenantOf(context);
  return await bodies.read(context.req.raw, async (body) => {
    const items = parse(body);
    const outcomes = await acks.ack(tenant, items);
    metrics.countAcks(outcomes);
    return context.json(outcomes.map((outcome, i) => toReply(outcome, i, items[i]!)));
  });
}

function toReply(outcome: AckOutcome, index: number, { transactionId }: Ack) {
  const { success, error = null, leaseReleased, dlq, noop } = outcome;
  return { index, transactionId, success, error, leaseReleased, dlq, noop };
}
