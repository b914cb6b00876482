/**
 * Storing messages.
 *
 * @module
 */

import { arrayLiteral } from "./array_literal.ts";
import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import { WINDOW_MESSAGES } from "./ready.ts";
import type { PushItem, PushOutcome, PushResult, TenantId, TouchedPartition } from "./store.ts";

/** The lease time of a queue that nobody configured, in seconds. */
export const DEFAULT_LEASE_SECONDS = 60;

/** Stores the items in one transaction. */
export async function push(
  pool: Pick<Pool, "query">,
  schema: string,
  { tenant, items }: { readonly tenant: TenantId; readonly items: readonly PushItem[] },
): Promise<PushResult> {
  if (items.length === 0) return { outcomes: [], touched: [] };
  const rows = await pool.query(
    `select * from ${schema}.push($1::uuid, $2::text[], $3::text[], $4::uuid[], $5::text[],
      $6::text[], $7::boolean[])`,
    [
      tenant,
      arrayLiteral(items.map((item) => item.queue)),
      arrayLiteral(items.map((item) => item.partition)),
      arrayLiteral(items.map((item) => item.messageId)),
      arrayLiteral(items.map((item) => item.transactionId)),
      arrayLiteral(items.map((item) => item.payload)),
      arrayLiteral(items.map((item) => String(item.encrypted ?? false))),
    ],
  );
  const outcomes = new Array<PushOutcome>(items.length);
  const touched = new Map<string, TouchedPartition>();
  const misjudged = new Set<string>();
  for (const row of rows) {
    const index = Number(row["item"]) - 1;
    const item = items[index]!;
    const status = row["status"] as PushOutcome["status"];
    const messageId = row["message_id"] as string;
    if (status === "failed") misjudged.add(item.queue);
    outcomes[index] = status === "failed"
      ? { status, messageId, error: `The encryption of the queue "${item.queue}" was changed` }
      : { status, messageId };
    const { queue, partition } = item;
    const delayMs = row["available_in_ms"] as number | null;
    if (status !== "queued" || delayMs === null) continue;
    const delay = delayMs === 0 ? {} : { delayMs };
    touched.set(row["partition_id"] as string, { queue, partition, ...delay });
  }
  return {
    outcomes,
    touched: [...touched.values()],
    ...(misjudged.size === 0 ? {} : { misjudged: [...misjudged] }),
  };
}

/** Whether a message of this id, accepted at that time, is what is given, or makes it a duplicate. */
const isKnown = (id: string, acceptedAt: string): string =>
  `(
            ${id} = given.id
            or ${acceptedAt} > coalesce(given.accepted_at, v_now) - given.dedup_window
              and (given.accepted_at is null
                or ${acceptedAt} < given.accepted_at + given.dedup_window)
          )`;

/** What the schema needs for {@linkcode push}. */
export const pushFunctions = (s: string): readonly string[] => [
  `
-- The id of each item's partition, null where it does not exist.
create function ${s}.find_partitions(p_tenant uuid, p_queues text[], p_partitions text[])
returns uuid[] language plpgsql stable as $$
begin
  return (
    select array_agg(partition.id order by item)
      from unnest(p_queues, p_partitions) with ordinality name (queue, partition, item)
      left join ${s}.queue on queue.tenant = p_tenant and queue.name = name.queue
      left join ${s}.partition on partition.queue_id = queue.id and partition.name = name.partition
  );
end $$`,
  `
-- Makes the queues and partitions that are missing, each partition with its cursors.
create function ${s}.make_partitions(p_tenant uuid, p_queues text[], p_partitions text[])
returns void language plpgsql as $$
begin
  insert into ${s}.queue (tenant, name, lease_time)
    select distinct p_tenant, name, ${DEFAULT_LEASE_SECONDS} from unnest(p_queues) name order by name
    on conflict do nothing;
  -- A group that is being recorded makes its cursors under the queue's row: either it sees the new
  -- partitions, or these see it.
  perform from ${s}.queue where tenant = p_tenant and name = any (p_queues)
    order by name for key share;
  with made as (
    insert into ${s}.partition (queue_id, name)
      select distinct queue.id, item.partition
        from unnest(p_queues, p_partitions) item (queue, partition)
        join ${s}.queue on queue.tenant = p_tenant and queue.name = item.queue
        order by 1, 2
      on conflict do nothing
      returning id, queue_id
  )
  insert into ${s}.cursor (partition_id, consumer_group, queue_id)
    select id, '__QUEUE_MODE__', queue_id from made
    union all
    select made.id, consumer_group.name, made.queue_id
      from made join ${s}.consumer_group on consumer_group.queue_id = made.queue_id;
end $$`,
  `
-- Finds the partitions, makes those that are missing, and locks them until the commit.
create function ${s}.lock_partitions(p_tenant uuid, p_queues text[], p_partitions text[])
returns uuid[] language plpgsql as $$
declare
  v_partitions uuid[] := ${s}.find_partitions(p_tenant, p_queues, p_partitions);
  v_locked bigint;
begin
  if array_position(v_partitions, null) is not null then
    perform ${s}.make_partitions(p_tenant, p_queues, p_partitions);
    v_partitions := ${s}.find_partitions(p_tenant, p_queues, p_partitions);
  end if;
  perform from ${s}.partition join ${s}.queue on queue.id = partition.queue_id
    where partition.id = any (v_partitions) and queue.tenant = p_tenant
    order by partition.id for no key update of partition;
  get diagnostics v_locked = row_count;
  if array_position(v_partitions, null) is not null
    or v_locked < (select count(distinct id) from unnest(v_partitions) id) then
    raise serialization_failure using message = 'a queue was deleted meanwhile';
  end if;
  return v_partitions;
end $$`,
  `
-- Stores messages. One whose p_encrypted is not what its queue says is failed, and not stored. Where
-- p_accepted says when it was accepted, that is the time that counts for duplicates; then no
-- transaction may occur in one partition twice. The first cursor that can be taken from again says when.
create function ${s}.push(
  p_tenant uuid, p_queues text[], p_partitions text[],
  p_ids uuid[], p_transactions text[], p_payloads text[],
  p_encrypted boolean[] default null, p_accepted timestamptz[] default null
)
returns table (
  item bigint, partition_id uuid, status text, message_id uuid, available_in_ms integer
)
language plpgsql ${FUNCTION_SETTINGS} as $$
#variable_conflict use_column
declare
  v_partitions uuid[] := ${s}.lock_partitions(p_tenant, p_queues, p_partitions);
  v_now timestamptz;
begin
  -- From here to the commit these partitions are ours, and every statement sees all that was
  -- committed in them before.
  v_now := clock_timestamp();
  return query
  with given as (
    select given.*, partition.last_number, partition.last_at,
      queue.dedup_window_seconds * interval '1 second' as dedup_window,
      queue.encryption_enabled <> coalesce(given.encrypted, false) as refused,
      queue.delayed_processing * interval '1 second' as delay,
      queue.window_buffer * interval '1 second' as window_buffer
    from unnest(v_partitions, p_ids, p_transactions, p_payloads, p_encrypted, p_accepted)
      with ordinality given
        (partition_id, id, transaction_id, payload, encrypted, accepted_at, item)
    join ${s}.partition on partition.id = given.partition_id
    join ${s}.queue on queue.id = partition.queue_id
  ), judged as materialized (
    -- The same id is a repeated attempt, whatever the window. The same transactionId is a
    -- duplicate within the window, in this call too. What was accepted long ago and waited in a
    -- spool can be older than what is stored.
    select given.*, coalesce(
      (select message.id from ${s}.message
        where message.partition_id = given.partition_id
          and message.transaction_id = given.transaction_id
          and ${isKnown("message.id", "coalesce(message.accepted_at, message.created_at)")}
        order by message.number desc limit 1),
      (select swept.id from ${s}.swept
        where swept.partition_id = given.partition_id
          and swept.transaction_id = given.transaction_id
          and ${isKnown("swept.id", "swept.accepted_at")}),
      case when given.dedup_window > interval '0' then
        nullif(first_value(given.id) over same_transaction, given.id)
      end
    ) as known_id
    from given
    window same_transaction as
      (partition by given.partition_id, given.transaction_id order by given.item)
  ), stored as (
    insert into ${s}.message
      (partition_id, number, id, transaction_id, payload, encrypted, created_at, accepted_at)
    select partition_id, last_number + row_number() over (partition by partition_id order by item),
      id, transaction_id, payload, coalesce(encrypted, false), greatest(last_at, v_now), accepted_at
    from judged where known_id is null and not refused
  ), counted as (
    select partition_id, count(*) as stored, min(last_number) + count(*) as last_number,
      greatest(min(last_at), v_now) as stored_at, min(delay) as delay,
      min(window_buffer) as window_buffer
    from judged where known_id is null and not refused group by partition_id
  ), numbered as (
    update ${s}.partition
      set last_number = counted.last_number, last_at = counted.stored_at
      from counted where partition.id = counted.partition_id
  ), waiting as (
    -- Beside those that are idle: those that wait for a window that is full now.
    select cursor.partition_id, cursor.consumer_group, delay, window_buffer, stored_at,
      counted.last_number - committed - cardinality(settled) >= ${WINDOW_MESSAGES} as is_full,
      case when ready_at is not null then
        (select created_at from ${s}.message
          where message.partition_id = cursor.partition_id and number > committed
          order by number limit 1)
      end as waits_since
    from counted join ${s}.cursor on cursor.partition_id = counted.partition_id
    where ready_at is null
      or (window_buffer > interval '0' and ready_at > v_now and lease_id is null
        and committed >= released_to
        and counted.last_number - committed - cardinality(settled) >= ${WINDOW_MESSAGES})
    order by cursor.partition_id, cursor.consumer_group
    for no key update of cursor
  ), woken as materialized (
    -- stored_at can be ahead of the clock, which is nothing to wait for.
    select partition_id, consumer_group, greatest(
      v_now,
      case when delay > interval '0' then coalesce(waits_since, stored_at) + delay end,
      case when window_buffer > interval '0' and not is_full then stored_at + window_buffer end
    ) as ready_at
    from waiting
  ), updated as (
    update ${s}.cursor
      set ready_at = woken.ready_at from woken
      where cursor.partition_id = woken.partition_id and cursor.consumer_group = woken.consumer_group
  )
  select item, partition_id,
    case when refused then 'failed' when known_id is null then 'queued' else 'duplicate' end,
    coalesce(known_id, id),
    case when delay = interval '0' and window_buffer = interval '0' then 0
      else (select least(ceil(extract(epoch from ready_at - v_now) * 1000), 2147483647)::integer
        from woken where woken.partition_id = judged.partition_id order by ready_at limit 1) end
  from judged;
end $$`,
];
