/**
 * Holds what clients saw against the rules that replicas promise. It knows nothing of how the history
 * came about: events in, violations out.
 *
 * @module
 */

import { checkGroup, type GroupResult } from "./check_group.ts";
import type { Setting, SoakEvent } from "./history.ts";
import { type Leases, leasesOf } from "./leases.ts";
import { acceptanceOf, type KnownMessage, messagesOf } from "./messages.ts";
import { checkPushOrder, findOrders, type PartitionOrder } from "./reference_order.ts";
import type { Violation } from "./violation.ts";

/**
 * Finds what a whole history breaks: one in which in the end nothing more was to be had for any group.
 */
export function check(events: readonly SoakEvent[], setting: Setting): Violation[] {
  const messages = messagesOf(events);
  const leases = leasesOf(events, messages, setting);
  const { orders, isConfused, violations } = findOrders(leases);
  const found = [
    ...checkTroubles(events),
    ...checkPushes(messages),
    ...checkOutages(events),
    ...checkDeliveries(events, messages),
    ...violations,
    ...[...orders.values()].flatMap((order) => checkPushOrder(order, messages)),
  ];
  for (const [group, start] of setting.groups) {
    const moment = start === "new" ? firstPop(events, group) : { sentAt: -1, answeredAt: -1 };
    for (const partition of partitionsOf(messages)) {
      if (isConfused(group, partition)) continue;
      const order = orders.get(partition) ?? new Map<string, number>();
      const startsAt = start === "all" ? 0 : undefined;
      const given = leases.get(group)?.get(partition) ?? [];
      const result = checkGroup(given, { order, setting, startsAt });
      found.push(...result.violations);
      found.push(...checkEnd(result, { group, partition, messages, leases, order, moment }));
    }
  }
  return found;
}

function checkTroubles(events: readonly SoakEvent[]): Violation[] {
  return events.flatMap((event) =>
    event.type === "trouble"
      ? [{ rule: "no trouble", text: `${event.text} (at ${event.at.toFixed(1)} ms)` }]
      : []
  );
}

function checkPushes(messages: ReadonlyMap<string, KnownMessage>): Violation[] {
  const violations: Violation[] = [];
  for (const { transaction, attempts } of messages.values()) {
    attempts.forEach(({ status, replica, answeredAt }, i) => {
      if (status !== "failed" && (status !== "duplicate" || i > 0)) return;
      const text = `attempt ${i + 1} to push ${transaction} to ${replica} was answered ${status} ` +
        `(event ${answeredAt})`;
      violations.push({ rule: "pushes are taken", text });
    });
  }
  return violations;
}

/** A call that began in an outage and was answered in it can say nothing that needs PostgreSQL. */
function checkOutages(events: readonly SoakEvent[]): Violation[] {
  const violations: Violation[] = [];
  let begun: Set<number> | undefined;
  for (const event of events) {
    if (event.type === "outage") begun = event.begins ? new Set() : undefined;
    else if (event.type === "sent") begun?.add(event.call);
    else if (event.type === "answered" && begun?.has(event.call)) {
      const { answer, call } = event;
      if (answer.kind === "push" && answer.statuses.every((status) => status === "buffered")) {
        continue;
      }
      const text = `the call ${call} was answered ${
        JSON.stringify(answer)
      } while PostgreSQL was away`;
      violations.push({ rule: "outages are told", text });
    }
  }
  return violations;
}

function checkDeliveries(
  events: readonly SoakEvent[],
  messages: ReadonlyMap<string, KnownMessage>,
): Violation[] {
  const violations: Violation[] = [];
  const ids = new Map<string, string>();
  for (const event of events) {
    if (event.type !== "answered" || event.answer.kind !== "pop") continue;
    for (const batch of event.answer.batches) {
      for (const { id, transaction } of batch.messages) {
        const message = messages.get(transaction);
        if (message?.partition !== batch.partition) {
          const text = `${transaction} was delivered from ${batch.partition} and pushed to ` +
            (message?.partition ?? "nothing");
          violations.push({ rule: "nothing is invented", text });
        }
        const known = ids.get(transaction) ?? id;
        ids.set(transaction, known);
        if (known === id) continue;
        const text = `${transaction} is delivered as ${known} and as ${id}`;
        violations.push({ rule: "stored once", text });
        ids.set(transaction, id);
      }
    }
  }
  return violations;
}

/** The places in the history between which a group's first pop arrived. */
interface Moment {
  readonly sentAt: number;
  readonly answeredAt: number;
}

function firstPop(events: readonly SoakEvent[], group: string): Moment {
  const calls = new Set<number>();
  let sentAt = Infinity;
  for (const [index, event] of events.entries()) {
    if (event.type === "sent" && event.request.kind === "pop" && event.request.group === group) {
      calls.add(event.call);
      sentAt = Math.min(sentAt, index);
    } else if (event.type === "answered" && calls.has(event.call)) {
      return { sentAt, answeredAt: index };
    }
  }
  return { sentAt, answeredAt: Infinity };
}

function checkEnd(
  { states, start }: GroupResult,
  { group, partition, messages, leases, order, moment }: {
    readonly group: string;
    readonly partition: string;
    readonly messages: ReadonlyMap<string, KnownMessage>;
    readonly leases: Leases;
    readonly order: PartitionOrder;
    readonly moment: Moment;
  },
): Violation[] {
  const violations: Violation[] = [];
  const delivered = new Set(
    (leases.get(group)?.get(partition) ?? []).flatMap((lease) =>
      lease.messages.map(({ transaction }) => transaction)
    ),
  );
  for (const message of messages.values()) {
    if (message.partition !== partition) continue;
    const { transaction, attempts } = message;
    const acceptance = acceptanceOf(message);
    const isDue = attempts[0]!.sentAt > moment.answeredAt;
    if (acceptance !== undefined && isDue && !delivered.has(transaction)) {
      const text =
        `${transaction} was answered ${acceptance.status} by ${acceptance.replica} (event ` +
        `${acceptance.answeredAt}) and never delivered to ${group}, ` +
        (order.has(transaction) ? "though to another group" : "nor to any other group");
      const rule = moment.sentAt < 0 ? "nothing is lost" : "new is that moment";
      violations.push({ rule, text });
    }
    const isTooOld = acceptance !== undefined && acceptance.status !== "buffered" &&
      acceptance.answeredAt < moment.sentAt;
    if (isTooOld && delivered.has(transaction)) {
      const text =
        `${transaction} was stored before ${group} began, and delivered to it all the same`;
      violations.push({ rule: "new is that moment", text });
    }
  }
  const left = states.map(({ next }) => order.size - next);
  if (start !== undefined && !left.includes(0)) {
    const text = `${group} is not done with the last ${Math.min(...left)} messages of ${partition}`;
    violations.push({ rule: "nothing is lost", text });
  }
  return violations;
}

function partitionsOf(messages: ReadonlyMap<string, KnownMessage>): Set<string> {
  return new Set([...messages.values()].map(({ partition }) => partition));
}
