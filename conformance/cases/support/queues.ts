import type { CaseContext } from "../../context.ts";
import { expectThat } from "../../harness/failure.ts";
import type { TargetNode } from "../../harness/target_node.ts";
import { messagesOf, pop } from "./pops.ts";

/** A queue of a tenant. */
export interface QueueName {
  /** Its name. */
  readonly queue: string;
  /** Its tenant, as the header names it; the default one where it is left out. */
  readonly tenant?: string;
}

/** The lease time that cases configure first, in seconds: no case sees such a lease run out. */
const LONG_LEASE_S = 300;

/** And this is the one that they change it to: the shortest that there is. */
const SHORT_LEASE_S = 1;

/** How long a message is looked for that was leased for a second, in milliseconds. */
const REDELIVERY_MS = 2000;

/** Configures a queue by a node. */
export async function configure(
  context: CaseContext,
  node: TargetNode,
  { queue, tenant, leaseTime }: QueueName & { leaseTime: number },
): Promise<void> {
  const reply = await node.request("/api/v1/configure", {
    method: "POST",
    body: { queue, options: { leaseTime } },
    headers: tenantHeader(tenant),
    signal: context.signal,
  });
  expectThat(
    reply.status === 200,
    "POST /api/v1/configure to answer 200",
    `${reply.status} ${reply.text}`,
  );
}

/** Deletes a queue by a node. */
export async function deleteQueue(
  context: CaseContext,
  node: TargetNode,
  { queue, tenant }: QueueName,
): Promise<void> {
  const path = `/api/v1/resources/queues/${encodeURIComponent(queue)}`;
  const reply = await node.request(path, {
    method: "DELETE",
    headers: tenantHeader(tenant),
    signal: context.signal,
  });
  expectThat(
    reply.status === 200,
    "DELETE of a queue that is there to answer 200",
    `${reply.status} ${reply.text}`,
  );
}

/** Configures a queue with a long lease time by one node, and makes the other one cache that. */
export async function cacheLongLease(
  context: CaseContext,
  { judged, silent, ...name }: QueueName & { judged: TargetNode; silent: TargetNode },
): Promise<void> {
  await configure(context, silent, { ...name, leaseTime: LONG_LEASE_S });
  await leaseOne(context, { judged, silent, ...name });
}

/** Configures a queue with a short lease time. */
export async function shortenLease(
  context: CaseContext,
  node: TargetNode,
  name: QueueName,
): Promise<void> {
  await configure(context, node, { ...name, leaseTime: SHORT_LEASE_S });
}

/**
 * Waits until what a node leases comes again after a second, as the queue is configured now. What was
 * leased before may be held for long: each look takes a message of its own.
 *
 * @param because Why the node must know, to be read at the end of the sentence.
 */
export async function expectShortLeases(
  context: CaseContext,
  { judged, silent, ...name }: QueueName & { judged: TargetNode; silent: TargetNode },
  because: string,
): Promise<void> {
  await context.until(
    `node ${judged.name} to lease messages of queue "${name.queue}" for ${SHORT_LEASE_S} s instead of ${LONG_LEASE_S} s, ${because}`,
    async () => {
      const partition = await leaseOne(context, { judged, silent, ...name });
      const deadline = performance.now() + REDELIVERY_MS * Math.max(1, context.scale);
      do {
        await context.pause(50);
        const reply = await pop(context, { node: judged, ...name, partition });
        if (messagesOf(reply).length > 0) return true;
      } while (performance.now() < deadline);
      return false;
    },
    Boolean,
    {
      describe: () => `a message that it had leased did not come again within ${REDELIVERY_MS} ms`,
    },
  );
}

/** Stores a message in a partition of its own by one node and takes it by the other: the partition. */
async function leaseOne(
  context: CaseContext,
  { judged, silent, queue, tenant }: QueueName & { judged: TargetNode; silent: TargetNode },
): Promise<string> {
  const partition = context.uniqueName("lane");
  const name = { queue, ...(tenant === undefined ? {} : { tenant }) };
  await context.push(silent, [{ queue, partition }], name);
  const reply = await pop(context, { node: judged, ...name, partition });
  expectThat(
    messagesOf(reply).length === 1,
    `a pop on node ${judged.name} to bring the message that was pushed on node ${silent.name}`,
    `${reply.status} ${reply.text}`,
  );
  return partition;
}

function tenantHeader(tenant: string | undefined): Record<string, string> {
  return tenant === undefined ? {} : { "x-queen-tenant": tenant };
}
