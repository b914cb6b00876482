/**
 * Acknowledging.
 *
 * @module
 */

import { arrayLiteral } from "./array_literal.ts";
import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import { isUuid, QUEUE_MODE } from "./pop.ts";
import type {
  Ack,
  AckOutcome,
  AckResult,
  DelayedPartition,
  GroupPartition,
  TenantId,
} from "./store.ts";

/** Acknowledges or gives back, in one transaction. */
export async function ack(
  pool: Pick<Pool, "query">,
  schema: string,
  { tenant, acks }: { readonly tenant: TenantId; readonly acks: readonly Ack[] },
): Promise<AckResult> {
  if (acks.length === 0) return { outcomes: [], available: [], delayed: [] };
  const rows = await pool.query(
    `select * from ${schema}.ack($1::uuid, $2::uuid[], $3::text[], $4::text[], $5::text[],
      $6::text[], $7::text[])`,
    [
      tenant,
      // What is no UUID is no partition, and not worth failing the other acks for.
      arrayLiteral(acks.map(({ partitionId }) => isUuid(partitionId) ? partitionId : null)),
      arrayLiteral(acks.map((item) => item.consumerGroup ?? QUEUE_MODE)),
      arrayLiteral(acks.map((item) => item.transactionId)),
      arrayLiteral(acks.map((item) => item.status)),
      arrayLiteral(acks.map(({ leaseId }) => leaseId === undefined ? null : leaseText(leaseId))),
      // A text of PostgreSQL holds any character but one.
      arrayLiteral(acks.map(({ error }) => error?.replaceAll("\0", "\ufffd") ?? null)),
    ],
  );
  const outcomes = new Array<AckOutcome>(acks.length);
  const available: GroupPartition[] = [];
  const delayed: DelayedPartition[] = [];
  for (const row of rows) {
    const error = row["error"] as string | null;
    const index = Number(row["item"]) - 1;
    outcomes[index] = {
      success: error === null,
      ...(error === null ? {} : { error }),
      leaseReleased: row["lease_released"] as boolean,
      dlq: row["dlq"] as boolean,
      noop: row["noop"] as boolean,
    };
    const delayMs = row["available_in_ms"] as number | null;
    if (delayMs === null) continue;
    const name = {
      queue: row["queue"] as string,
      partition: row["partition"] as string,
      consumerGroup: acks[index]!.consumerGroup ?? QUEUE_MODE,
    };
    if (delayMs === 0) available.push(name);
    else delayed.push({ ...name, delayMs });
  }
  return { outcomes, available, delayed };
}

/** What is no UUID is no lease, whatever characters it holds. */
function leaseText(leaseId: string): string {
  return isUuid(leaseId) ? leaseId : "none";
}

/** What the schema needs for {@linkcode ack}. */
export const ackFunctions = (s: string): readonly string[] => [
  `
-- One row for each ack. The first row of a partition that can be taken from again says when.
create function ${s}.ack(
  p_tenant uuid, p_partitions uuid[], p_groups text[], p_transactions text[], p_statuses text[],
  p_leases text[], p_errors text[]
)
returns table (
  item bigint, error text, lease_released boolean, dlq boolean, noop boolean,
  queue text, partition text, available_in_ms integer
)
language plpgsql ${FUNCTION_SETTINGS} as $$
#variable_conflict use_column
declare
  v_acks record; -- those of one cursor
  v_cursor ${s}.cursor;
  v_queue ${s}.queue;
  v_valid boolean[];
  v_numbers bigint[]; -- each ack's message, null where it is not in the batch
  v_done boolean[]; -- whether each ack's message was done before
  v_has_failed boolean; -- a try is charged
  v_is_over boolean; -- and it was one too many
  v_dead bigint[]; -- messages that are given up, with or without a dead letter
  v_given bigint; -- the lowest message given back
  v_committed bigint;
  v_settled bigint[];
  v_has_ended boolean;
  v_backlog text;
  v_delay integer;
  v_ready_at timestamptz; -- from when on the partition can be taken from again
  v_available_in integer;
  v_now timestamptz;
begin
  for v_acks in
    select partition_id, consumer_group, array_agg(item order by item) as items,
      array_agg(transaction_id order by item) as transactions,
      array_agg(status order by item) as statuses, array_agg(lease order by item) as leases,
      array_agg(error order by item) as errors
    from unnest(p_partitions, p_groups, p_transactions, p_statuses, p_leases, p_errors)
      with ordinality ack
        (partition_id, consumer_group, transaction_id, status, lease, error, item)
    group by 1, 2 order by 1, consumer_group collate "C"
  loop
    select cursor.* into v_cursor
      from ${s}.cursor join ${s}.queue on queue.id = cursor.queue_id
      where cursor.partition_id = v_acks.partition_id
        and cursor.consumer_group = v_acks.consumer_group and queue.tenant = p_tenant
      for no key update of cursor;
    if not found then
      return query select item,
        case when lease is null then 'unknown partition or consumer group'
          else 'invalid or expired lease' end,
        false, false, false, null::text, null::text, null::integer
        from unnest(v_acks.items, v_acks.leases) ack (item, lease);
      continue;
    end if;
    v_now := clock_timestamp();
    select * into v_queue from ${s}.queue where id = v_cursor.queue_id;

    -- A transactionId that occurs several times in the batch means one occurrence after another.
    select array_agg(valid order by item),
      array_agg(case when valid then coalesce(
        (select number from ${s}.message
          where partition_id = v_cursor.partition_id and transaction_id = ack.transaction_id
            and number > v_cursor.committed and number <= v_cursor.lease_end
            and number <> all (v_cursor.settled)
          order by number limit 1 offset ack.nth - 1),
        (select number from ${s}.message
          where partition_id = v_cursor.partition_id and transaction_id = ack.transaction_id
            and number > v_cursor.committed and number <= v_cursor.lease_end
            and number <> all (v_cursor.settled)
          order by number desc limit 1)
      ) end order by item),
      array_agg(exists (select from ${s}.message
        where partition_id = v_cursor.partition_id and transaction_id = ack.transaction_id
          and (number <= v_cursor.committed or number = any (v_cursor.settled))) order by item)
      into v_valid, v_numbers, v_done
      from (
        select item, transaction_id,
          lease is null or
            coalesce(lease = v_cursor.lease_id::text and v_cursor.lease_expires_at > v_now, false)
            as valid,
          row_number() over (partition by transaction_id order by item) as nth
        from unnest(v_acks.items, v_acks.transactions, v_acks.leases)
          ack (item, transaction_id, lease)
      ) ack;

    select coalesce(bool_or(status = 'failed'), false) into v_has_failed
      from unnest(v_numbers, v_acks.statuses) ack (number, status) where number is not null;
    v_is_over := v_has_failed and v_cursor.tries >= v_queue.retry_limit;
    select
      coalesce(array_agg(distinct number)
        filter (where status = 'dlq' or (status = 'failed' and v_is_over)), '{}'),
      min(number) filter (where status = 'retry' or (status = 'failed' and not v_is_over))
      into v_dead, v_given
      from unnest(v_numbers, v_acks.statuses) ack (number, status) where number is not null;
    select greatest(v_cursor.committed, max(number)) into v_committed
      from unnest(v_numbers, v_acks.statuses) ack (number, status)
      where status = 'completed' and (v_given is null or number < v_given);
    v_settled := v_cursor.settled || v_dead;
    while v_committed + 1 = any (v_settled) loop
      v_committed := v_committed + 1;
    end loop;
    v_has_ended := v_given is not null
      or (v_committed > v_cursor.committed and v_committed >= v_cursor.lease_end);

    insert into ${s}.dead_letter
      select distinct on (message.number) v_cursor.partition_id, v_cursor.consumer_group,
        message.number, v_cursor.queue_id, message.id, message.transaction_id, message.payload,
        message.encrypted, ack.error, v_cursor.tries, message.created_at, v_now
      from unnest(v_numbers, v_acks.statuses, v_acks.errors) ack (number, status, error)
      join ${s}.message
        on message.partition_id = v_cursor.partition_id and message.number = ack.number
      where status = 'dlq'
        or (status = 'failed' and v_is_over and v_queue.dlq_after_max_retries);

    v_available_in := null;
    if v_has_ended then
      v_backlog := ${s}.backlog(v_cursor.partition_id, v_committed);
      v_delay := case when v_has_failed and not v_is_over then v_queue.retry_delay else 0 end;
      v_settled := array(select number from unnest(v_settled) number where number > v_committed);
      v_ready_at := case when v_backlog <> 'none' then greatest(
        v_now + v_delay * interval '1 ms',
        ${s}.next_ready(v_queue, v_cursor.partition_id, v_committed, v_settled,
          v_cursor.released_to, v_now)
      ) end;
      v_available_in := ${s}.available_in_ms(v_queue, v_backlog, v_ready_at, v_now);
      update ${s}.cursor
        set committed = v_committed, lease_id = null, lease_end = v_committed,
          settled = v_settled, lease_expires_at = null,
          tries = case when v_is_over or v_given is null then 0
            when v_has_failed then tries + 1 else tries end,
          ready_at = v_ready_at
        where partition_id = v_cursor.partition_id and consumer_group = v_cursor.consumer_group;
    elsif v_committed > v_cursor.committed or v_dead <> '{}' then
      update ${s}.cursor
        set committed = v_committed,
          settled = array(select number from unnest(v_settled) number where number > v_committed),
          tries = case when v_is_over then 0 else tries end
        where partition_id = v_cursor.partition_id and consumer_group = v_cursor.consumer_group;
    end if;

    return query
      select ack.item,
        case
          when not valid then 'invalid or expired lease'
          when number is not null then null
          when done and status <> 'completed' then 'the message was completed before'
          when not done then 'no such message in the leased batch'
        end,
        v_has_ended and valid and (number is not null or (done and status = 'completed')),
        number is not null and (status = 'dlq'
          or (status = 'failed' and v_is_over and v_queue.dlq_after_max_retries)),
        valid and number is null and done and status = 'completed',
        v_queue.name,
        case when v_available_in is not null and ack.item = v_acks.items[1] then
          (select name from ${s}.partition where id = v_cursor.partition_id) end,
        case when ack.item = v_acks.items[1] then v_available_in end
      from unnest(v_acks.items, v_acks.statuses, v_valid, v_numbers, v_done)
        ack (item, status, valid, number, done);
  end loop;
end $$`,
];
