/**
 * Pushes and acks in one transaction.
 *
 * @module
 */

import { ack } from "./ack.ts";
import { arrayLiteral } from "./array_literal.ts";
import type { Send } from "./connection.ts";
import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import { isUuid, QUEUE_MODE } from "./pop.ts";
import { push } from "./push.ts";
import type { AckResult, PushResult, TenantId, TransactionResult } from "./store.ts";
import type { TransactionRequest } from "./store.ts";

/** What is thrown through a transaction to roll it back. */
class RolledBack extends Error {
  override readonly name = "RolledBack";
  readonly result: TransactionResult;

  constructor(error: string, { pushed, acked }: { pushed?: PushResult; acked?: AckResult } = {}) {
    super(error);
    this.result = { isCommitted: false, error, pushed, acked };
  }
}

const NOT_HELD = "a required lease is not held or has run out";

/** Pushes and acknowledges, all of it or nothing. */
export async function transaction(
  pool: Pool,
  schema: string,
  { tenant, request }: { readonly tenant: TenantId; readonly request: TransactionRequest },
): Promise<TransactionResult> {
  const parts = { schema, tenant, request };
  try {
    return await pool.transaction(async (send) => await run(send, parts));
  } catch (error) {
    if (error instanceof RolledBack) return error.result;
    throw error;
  }
}

/** What {@linkcode run} is about. */
interface Parts {
  readonly schema: string;
  readonly tenant: TenantId;
  readonly request: TransactionRequest;
}

async function run(send: Send, { schema, tenant, request }: Parts): Promise<TransactionResult> {
  const { items, acks } = request;
  const heldUntil = await lock(send, { schema, tenant, request });
  const queries = { query: send };
  const pushed = await push(queries, schema, { tenant, items });
  if (pushed.outcomes.some(({ status }) => status === "failed")) {
    throw new RolledBack("a message could not be stored", { pushed });
  }
  const acked = await ack(queries, schema, { tenant, acks });
  const failed = acked.outcomes.findIndex(({ success }) => !success);
  if (failed >= 0) {
    const { transactionId } = acks[failed]!;
    const reason = acked.outcomes[failed]!.error;
    const error = `the ack of ${JSON.stringify(transactionId)} failed: ${reason}`;
    throw new RolledBack(error, { pushed, acked });
  }
  // The leases are ours for as long as we hold their rows, but time goes on, and the acks may have
  // ended them.
  if (heldUntil !== undefined) {
    const [row] = await send("select clock_timestamp() < $1::text::timestamptz as in_time", [
      heldUntil,
    ]);
    if (!row!["in_time"]) throw new RolledBack(NOT_HELD, { pushed, acked });
  }
  return { isCommitted: true, pushed, acked };
}

/**
 * Takes all locks. Resolves to until when all the required leases are held, or to undefined where
 * none are required.
 */
async function lock(
  send: Send,
  { schema, tenant, request }: Parts,
): Promise<string | undefined> {
  const { items, acks, requiredLeases } = request;
  if (!requiredLeases.every(isUuid)) throw new RolledBack(NOT_HELD);
  // Pushes alone, or acks alone, take their locks in order by themselves.
  if (requiredLeases.length === 0 && (items.length === 0 || acks.length === 0)) return undefined;
  const known = acks.filter(({ partitionId }) => isUuid(partitionId));
  const [row] = await send(
    `select ${schema}.lock_transaction($1::uuid, $2::text[], $3::text[], $4::uuid[], $5::text[],
      $6::uuid[])::text as held_until`,
    [
      tenant,
      arrayLiteral(items.map((item) => item.queue)),
      arrayLiteral(items.map((item) => item.partition)),
      arrayLiteral(known.map((item) => item.partitionId)),
      arrayLiteral(known.map((item) => item.consumerGroup ?? QUEUE_MODE)),
      arrayLiteral(requiredLeases),
    ],
  );
  if (requiredLeases.length === 0) return undefined;
  const heldUntil = row!["held_until"] as string | null;
  if (heldUntil === null) throw new RolledBack(NOT_HELD);
  return heldUntil;
}

/** What the schema needs for {@linkcode transaction}. */
export const transactionFunctions = (s: string): readonly string[] => [
  `
-- Takes every lock that pushes and acks in one transaction are going to want, in the order in which
-- all take them. Returns until when all the leases are held; null where one of them is not.
create function ${s}.lock_transaction(
  p_tenant uuid, p_queues text[], p_partitions text[], p_ack_partitions uuid[], p_ack_groups text[],
  p_leases uuid[]
)
returns timestamptz language plpgsql ${FUNCTION_SETTINGS} as $$
declare
  v_pushed uuid[] := '{}';
begin
  if cardinality(p_queues) > 0 then
    v_pushed := ${s}.lock_partitions(p_tenant, p_queues, p_partitions);
  end if;
  -- With the partitions locked, no cursor of theirs can become idle.
  perform from (
      select partition_id, consumer_group collate "C" as consumer_group
        from unnest(p_ack_partitions, p_ack_groups) ack (partition_id, consumer_group)
      union
      select partition_id, consumer_group from ${s}.cursor where lease_id = any (p_leases)
      union
      select partition_id, consumer_group
        from ${s}.cursor join ${s}.queue on queue.id = cursor.queue_id
        where partition_id = any (v_pushed) and (ready_at is null or window_buffer > 0)
    ) wanted
    join ${s}.cursor using (partition_id, consumer_group)
    join ${s}.queue on queue.id = cursor.queue_id
    where queue.tenant = p_tenant
    order by cursor.partition_id, cursor.consumer_group
    for no key update of cursor;
  return (
    select min(lease_expires_at)
      from ${s}.cursor join ${s}.queue on queue.id = cursor.queue_id
      where lease_id = any (p_leases) and queue.tenant = p_tenant
        and lease_expires_at > clock_timestamp()
      having count(*) = (select count(distinct lease) from unnest(p_leases) lease)
  );
end $$`,
];
