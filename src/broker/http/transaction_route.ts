import * as v from "valibot";
import { tenantOf } from "../tenancy.ts";
import type { Operation, OperationOutcome } from "../transaction_service.ts";
import { ACK_MEMBERS, ackEntries, toAck } from "./ack_input.ts";
import { ApiError } from "./api_error.ts";
import { type BodyFormat, parseBody } from "./input.ts";
import type { App, HttpParts } from "./parts.ts";
import { ITEMS_SHAPE, itemSchema, toDraft } from "./push_route.ts";

/** The most messages and acks, together, of one transaction. */
export const OPERATIONS_MAX = 100_000;

/** The most leases that one transaction can require. */
const LEASES_MAX = 10_000;

const operation = v.variant("type", [
  v.object({ type: v.literal("push"), items: v.array(itemSchema, "must be an array") }),
  v.object({ type: v.literal("ack"), ...ackEntries }),
], 'must be an object of the type "push" or "ack"');

const schema = v.object({
  operations: v.array(operation, "must be an array"),
  requiredLeases: v.nullish(
    v.array(v.string("must be a string"), "must be an array"),
  ),
}, "must be an object");

const FORMAT: BodyFormat<typeof schema> = {
  shape: {
    members: {
      operations: {
        countMax: OPERATIONS_MAX,
        elements: { members: { type: "scalar", items: ITEMS_SHAPE, ...ACK_MEMBERS } },
      },
      requiredLeases: { countMax: LEASES_MAX, elements: "scalar" },
    },
  },
  schema,
};

/** `POST /api/v1/transaction`. A transaction that is rolled back is no error of the route. */
export function addTransactionRoute(
  app: App,
  { transactions, gate, metrics, bodies }: HttpParts,
): void {
  app.post("/api/v1/transaction", async (context) => {
    gate.requireOpen();
    const tenant = tenantOf(context);
    return await bodies.read(context.req.raw, async (body) => {
      const { operations, requiredLeases } = parseBody(body, FORMAT);
      const receipt = await transactions.run(
        tenant,
        toOperations(operations),
        { requiredLeases: requiredLeases ?? [] },
      );
      metrics.countTransaction(receipt);
      const { transactionId, isCommitted, error, outcomes } = receipt;
      return context.json({
        transactionId,
        success: isCommitted,
        results: outcomes.map((outcome, index) => toResult(outcome, { index, isCommitted })),
        ...(error === undefined ? {} : { error }),
      });
    });
  });
}

function toOperations(input: readonly v.InferOutput<typeof operation>[]): Operation[] {
  const operations: Operation[] = [];
  for (const each of input) {
    if (each.type === "ack") operations.push({ type: "ack", ack: toAck(each) });
    else for (const item of each.items) operations.push({ type: "push", draft: toDraft(item) });
  }
  if (operations.length > OPERATIONS_MAX) {
    throw new ApiError(400, `operations: at most ${OPERATIONS_MAX} messages and acks are allowed`);
  }
  return operations;
}

/** What is said of an operation that would have gone through, but for another one. */
const ROLLED_BACK = "rolled back";

function toResult(
  result: OperationOutcome,
  { index, isCommitted }: { readonly index: number; readonly isCommitted: boolean },
) {
  const { type, outcome } = result;
  const head = { index, type, success: isCommitted };
  const error = outcome?.error ?? (isCommitted ? null : ROLLED_BACK);
  if (result.type === "ack") {
    const { transactionId } = result.ack;
    const { leaseReleased, dlq, noop } = isCommitted ? result.outcome! : NOTHING;
    return { ...head, transactionId, error, leaseReleased, dlq, noop };
  }
  const { transactionId, queue: queueName } = result.item;
  const { status, messageId } = isCommitted
    ? result.outcome!
    : { status: "failed", messageId: result.item.messageId };
  return { ...head, transactionId, messageId, queueName, status, error };
}

/** What an ack does that is rolled back. */
const NOTHING = { leaseReleased: false, dlq: false, noop: false };
