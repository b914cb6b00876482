import { acceptanceOf, type KnownMessage } from "./messages.ts";
import type { Lease, Leases } from "./leases.ts";
import type { Violation } from "./violation.ts";

/** A partition's order, as far as it is known: the place of each message that was delivered. */
export type PartitionOrder = ReadonlyMap<string, number>;

/** What {@linkcode findOrders} finds. */
export interface Orders {
  /** By partition. */
  readonly orders: ReadonlyMap<string, PartitionOrder>;
  /** Where a group sees another order: its cursor cannot be followed there. */
  readonly isConfused: (group: string, partition: string) => boolean;
  readonly violations: readonly Violation[];
}

/**
 * Finds the order of each partition. Nobody tells its numbers, but each group shows them by the order
 * in which it gets messages for the first time; the group that got most counts.
 */
export function findOrders(leases: Leases): Orders {
  const longest = new Map<string, string[]>();
  const lists: { group: string; partition: string; list: string[] }[] = [];
  for (const [group, partitions] of leases) {
    for (const [partition, given] of partitions) {
      const list = firstDeliveries(given);
      lists.push({ group, partition, list });
      if (list.length > (longest.get(partition)?.length ?? -1)) longest.set(partition, list);
    }
  }
  const confused = new Set<string>();
  const violations: Violation[] = [];
  for (const { group, partition, list } of lists) {
    const reference = longest.get(partition)!;
    const start = reference.indexOf(list[0]!);
    const at = list.findIndex((transaction, i) =>
      start < 0 || reference[start + i] !== transaction
    );
    if (at < 0) continue;
    confused.add(JSON.stringify([group, partition]));
    violations.push({
      rule: "one order",
      text: `${group} gets ${list[at]} of ${partition} as number ${start + at}, where another ` +
        `group gets ${reference[start + at] ?? "nothing"}; before that ${
          list.slice(Math.max(at - 3, 0), at).join(", ") || "nothing"
        }`,
    });
  }
  const orders = new Map(
    [...longest].map(([partition, list]) => [partition, new Map(list.map((each, i) => [each, i]))]),
  );
  const isConfused = (group: string, partition: string) =>
    confused.has(JSON.stringify([group, partition]));
  return { orders, isConfused, violations };
}

function firstDeliveries(leases: readonly Lease[]): string[] {
  const seen = new Set<string>();
  for (const { messages } of leases) for (const { transaction } of messages) seen.add(transaction);
  return [...seen];
}

/**
 * Holds a partition's order against its pushes. What was answered `queued` or `duplicate` was stored
 * before everything that was sent after that answer. What was answered `buffered` comes before all
 * that was sent to the same replica, and to no other, after that answer. Messages of one push keep
 * their order in it.
 */
export function checkPushOrder(
  order: PartitionOrder,
  messages: ReadonlyMap<string, KnownMessage>,
): Violation[] {
  const violations: Violation[] = [];
  /** Of the messages so far, the one that was sent last: of all, and of those for one replica. */
  let last: { sentAt: number; message: KnownMessage } | undefined;
  const lastAt = new Map<string, { sentAt: number; message: KnownMessage }>();
  /** The last item so far of each push, by where its attempts were sent. */
  const lastItems = new Map<string, { item: number; message: KnownMessage }>();
  for (const transaction of order.keys()) {
    const message = messages.get(transaction);
    if (message === undefined) continue;
    const acceptance = acceptanceOf(message);
    if (acceptance !== undefined) {
      const { status, replica, answeredAt } = acceptance;
      const rival = status === "buffered" ? lastAt.get(replica) : last;
      if (rival !== undefined && rival.sentAt > answeredAt) {
        violations.push({
          rule: "push order",
          text:
            `${rival.message.transaction} comes before ${transaction} in ${message.partition}, ` +
            `although that was answered ${status} by ${replica} before it was sent (events ` +
            `${answeredAt} and ${rival.sentAt})`,
        });
      }
    }
    const { sentAt, item } = message.attempts[0]!;
    const push = message.attempts.map((attempt) => attempt.sentAt).join();
    const before = lastItems.get(push);
    if (before !== undefined && before.item > item) {
      violations.push({
        rule: "push order",
        text:
          `${before.message.transaction} comes before ${transaction} in ${message.partition}, ` +
          `and after it in the push of both (event ${sentAt})`,
      });
    }
    lastItems.set(push, { item, message });
    if (sentAt > (last?.sentAt ?? -1)) last = { sentAt, message };
    const replicas = new Set(message.attempts.map(({ replica }) => replica));
    const [only] = replicas;
    if (replicas.size === 1 && sentAt > (lastAt.get(only!)?.sentAt ?? -1)) {
      lastAt.set(only!, { sentAt, message });
    }
  }
  return violations;
}
