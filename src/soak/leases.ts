import type { AckCall, AckOutcome, Batch, Setting, SoakEvent } from "./history.ts";
import type { KnownMessage } from "./messages.ts";

/** An ack of a lease. `answered` is missing where its outcome is open. */
export interface LeaseAck {
  readonly items: AckCall["items"];
  readonly sentMs: number;
  answered?: { readonly atMs: number; readonly outcomes: readonly AckOutcome[] };
}

/** A lease that a client was told of. */
export interface Lease extends Batch {
  readonly group: string;
  /** Before this it cannot have been given. */
  readonly claimedMsMin: number;
  /** When the client was told. */
  readonly answeredMs: number;
  readonly acks: LeaseAck[];
  /** It holds up to then, if it is not released; it does not hold after `endMsMax`. */
  endMsMin: number;
  endMsMax: number;
}

/** The leases of a history in the order in which they were given, by group and then by partition. */
export type Leases = ReadonlyMap<string, ReadonlyMap<string, readonly Lease[]>>;

/**
 * Finds the leases. They are in the order of their answers, which is that in which they were given as
 * long as no answer takes longer than the lease holds: those that did are left out, unless they were
 * acknowledged with success, by which they are known to have held.
 */
export function leasesOf(
  events: readonly SoakEvent[],
  messages: ReadonlyMap<string, KnownMessage>,
  setting: Setting,
): Leases {
  const all: Lease[] = [];
  const byId = new Map<string, Lease>();
  const sent = new Map<number, SoakEvent & { type: "sent" }>();
  const acks = new Map<number, LeaseAck>();
  for (const event of events) {
    if (event.type === "sent") {
      const { call, at, request } = event;
      sent.set(call, event);
      if (request.kind === "ack") {
        const ack = { items: request.items, sentMs: at };
        acks.set(call, ack);
        byId.get(request.leaseId)?.acks.push(ack);
      } else if (request.kind === "extend") {
        // Until it is answered it may have been granted, or be granted at any time.
        const lease = byId.get(request.leaseId);
        if (lease) lease.endMsMax = Infinity;
      }
    } else if (event.type === "answered") {
      const { answer, at } = event;
      const call = sent.get(event.call)!;
      if (answer.kind === "pop" && call.request.kind === "pop") {
        for (const batch of answer.batches) {
          const pushes = batch.messages.map((each) => messages.get(each.transaction)?.sentMs ?? 0);
          const claimedMsMin = Math.max(call.at, ...pushes);
          const lease = {
            ...batch,
            group: call.request.group,
            claimedMsMin,
            answeredMs: at,
            acks: [],
            endMsMin: claimedMsMin + setting.leaseMs,
            endMsMax: at + setting.leaseMs,
          };
          all.push(lease);
          byId.set(batch.leaseId, lease);
        }
      } else if (answer.kind === "ack") {
        acks.get(event.call)!.answered = { atMs: at, outcomes: answer.outcomes };
      } else if (answer.kind === "extend" && call.request.kind === "extend") {
        const lease = byId.get(call.request.leaseId);
        if (lease) noteExtension(lease, { call: call.request, sentMs: call.at, event, setting });
      }
    }
  }
  return grouped(all.filter((lease) => isInOrder(lease, setting)));
}

function noteExtension(
  lease: Lease,
  { call, sentMs, event, setting }: {
    readonly call: { readonly seconds: number };
    readonly sentMs: number;
    readonly event: SoakEvent & { type: "answered" };
    readonly setting: Setting;
  },
): void {
  const isGranted = event.answer.kind === "extend" && event.answer.success;
  const ms = isGranted ? call.seconds * 1000 : 0;
  if (isGranted) lease.endMsMin = Math.max(lease.endMsMin, sentMs + ms);
  lease.endMsMax = Math.max(lease.answeredMs + setting.leaseMs, event.at + ms);
}

function isInOrder(lease: Lease, { leaseMs, toleranceMs }: Setting): boolean {
  if (lease.answeredMs - lease.claimedMsMin < leaseMs - toleranceMs) return true;
  return lease.acks.some(({ answered }) => answered?.outcomes.some(({ success }) => success));
}

function grouped(leases: readonly Lease[]): Leases {
  const groups = new Map<string, Map<string, Lease[]>>();
  for (const lease of leases) {
    const partitions = groups.get(lease.group) ?? new Map<string, Lease[]>();
    groups.set(lease.group, partitions);
    const list = partitions.get(lease.partition) ?? [];
    partitions.set(lease.partition, list);
    list.push(lease);
  }
  return groups;
}
