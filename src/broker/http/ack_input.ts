import * as v from "valibot";
import type { Ack } from "../store/store.ts";
import { name, optionalName, optionalText } from "./input.ts";
import type { Shape } from "./raw_json.ts";

/** The words that complete a message; anything unknown counts as a failure. */
const STATUSES: ReadonlyMap<string, Ack["status"]> = new Map([
  ["completed", "completed"],
  ["success", "completed"],
  ["acked", "completed"],
  ["ok", "completed"],
  ["retry", "retry"],
  ["dlq", "dlq"],
]);

/** What an ack says. */
export const ackEntries = {
  transactionId: name,
  partitionId: name,
  status: optionalText,
  consumerGroup: optionalName,
  leaseId: optionalText,
  error: optionalText,
};

/** An ack as it comes. */
export const ackSchema = v.object(ackEntries, "must be an object");

/** An ack as a client says it. */
export type AckInput = v.InferOutput<typeof ackSchema>;

/** What of an ack is read. */
export const ACK_MEMBERS: Readonly<Record<string, Shape>> = {
  transactionId: "scalar",
  partitionId: "scalar",
  status: "scalar",
  consumerGroup: "scalar",
  leaseId: "scalar",
  error: "scalar",
};

/** What the store is told. An ack without a group is of the group `consumerGroup`. */
export function toAck(input: AckInput, consumerGroup?: string): Ack {
  const { transactionId, partitionId, status, leaseId, error } = input;
  const group = input.consumerGroup ?? consumerGroup;
  return {
    transactionId,
    partitionId,
    status: status === undefined ? "completed" : STATUSES.get(status) ?? "failed",
    ...(group === undefined ? {} : { consumerGroup: group }),
    ...(leaseId === undefined ? {} : { leaseId }),
    ...(error === undefined ? {} : { error }),
  };
}
