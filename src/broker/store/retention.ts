/**
 * Removing messages whose time is over, and what deleted queues have left.
 *
 * @module
 */

import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import { QUEUE_MODE } from "./pop.ts";
import type { SweepPosition, SweepStep } from "./store.ts";

/** So many messages are removed in one step. */
const MESSAGES_PER_STEP = 1000;

/** So many partitions are looked at in one step. */
const PARTITIONS_PER_STEP = 500;

/** Something is removed from so many of them at most. */
const SWEPT_PER_STEP = 100;

/** Takes one step of a sweep, from the beginning where there is no position. */
export async function sweep(
  pool: Pool,
  schema: string,
  position: SweepPosition | undefined,
): Promise<SweepStep> {
  const [row] = await pool.query(`select * from ${schema}.sweep($1::uuid, $2::text)`, [
    position?.queueId ?? null,
    position?.partition ?? null,
  ]);
  const queueId = row!["queue_id"] as string | null;
  const partition = row!["after"] as string | null;
  return {
    isBusy: row!["busy"] as boolean,
    removed: Number(row!["removed"]),
    next: queueId === null ? undefined : { queueId, ...(partition === null ? {} : { partition }) },
  };
}

/**
 * Whether a cursor's group has to be done with a message. A queue that has groups, and was never popped
 * without one, does not wait for queue mode.
 */
const countsForCompletion = (queue: string, hasGroups: string): string =>
  `(consumer_group <> '${QUEUE_MODE}' or ${queue}.queue_mode_used or not ${hasGroups})`;

/** What the schema needs for {@linkcode sweep}. */
export const retentionFunctions = (s: string): readonly string[] => [
  `
-- Removes up to p_limit messages of a partition. The caller holds the queue's row, so that the queue
-- is not deleted meanwhile.
create function ${s}.sweep_partition(
  p_queue ${s}.queue, p_has_groups boolean, p_partition_id uuid, p_limit bigint
)
returns bigint language plpgsql as $$
declare
  v_now timestamptz := clock_timestamp();
  v_done bigint; -- what every group is done with
  v_seen bigint; -- what every group was seen to be done with long enough ago
  v_old bigint; -- what is older than is kept
  v_held bigint; -- below what is leased
  v_locked bigint;
  v_removed bigint;
  v_dedup_window interval := p_queue.dedup_window_seconds * interval '1 second';
begin
  if p_queue.completed_retention_seconds > 0 then
    select min(committed) into v_done from ${s}.cursor
      where partition_id = p_partition_id
        and ${countsForCompletion("p_queue", "p_has_groups")};
    select max(number) into v_seen from ${s}.completion
      where partition_id = p_partition_id
        and seen_at <= v_now - p_queue.completed_retention_seconds * interval '1 second';
    delete from ${s}.completion where partition_id = p_partition_id and number < v_seen;
    -- A few of them are enough to be late by no more than a tenth.
    insert into ${s}.completion (partition_id, number, seen_at)
      select p_partition_id, v_done, v_now
        where v_done > 0 and not exists (
          select from ${s}.completion where partition_id = p_partition_id and (number >= v_done
            or seen_at > v_now - p_queue.completed_retention_seconds * interval '0.1 second')
        );
    -- A group that came later may not be as far.
    v_seen := case when v_seen > v_done then v_done else v_seen end;
  end if;
  if p_queue.retention_seconds > 0 and (
    select created_at from ${s}.message where partition_id = p_partition_id order by number limit 1
  ) < v_now - p_queue.retention_seconds * interval '1 second' then
    select max(number) into v_old from (
      select number, created_at from ${s}.message
        where partition_id = p_partition_id order by number limit p_limit
    ) message where created_at < v_now - p_queue.retention_seconds * interval '1 second';
    -- What is leased stays until the lease is over, and while we look nobody gets a lease. Who has
    -- a cursor now does not have to wait for us, nor we for him: another sweep will do.
    perform from ${s}.cursor where partition_id = p_partition_id and committed < v_old
      for no key update skip locked;
    get diagnostics v_locked = row_count;
    if v_locked < (
      select count(*) from ${s}.cursor where partition_id = p_partition_id and committed < v_old
    ) then
      v_old := null;
    else
      select min(committed) into v_held from ${s}.cursor
        where partition_id = p_partition_id and lease_expires_at > clock_timestamp();
      v_old := least(v_old, v_held);
    end if;
  end if;
  with removed as (
    delete from ${s}.message where partition_id = p_partition_id and number <= (
      select max(number) from (
        select number from ${s}.message
          where partition_id = p_partition_id and number <= greatest(v_old, v_seen)
          order by number limit p_limit
      ) message
    )
    returning number, transaction_id, id, coalesce(accepted_at, created_at) as accepted_at
  ), remembered as (
    insert into ${s}.swept (partition_id, transaction_id, id, accepted_at)
      select distinct on (transaction_id) p_partition_id, transaction_id, id, accepted_at
        from removed where accepted_at > v_now - v_dedup_window
        order by transaction_id, number desc
      on conflict (partition_id, transaction_id)
        do update set id = excluded.id, accepted_at = excluded.accepted_at
  )
  select count(*) into v_removed from removed;
  delete from ${s}.swept
    where partition_id = p_partition_id and accepted_at <= v_now - v_dedup_window;
  return v_removed;
end $$`,
  `
-- One step: in which queue, and after which of its partitions, the next one goes on; without a
-- queue it was the last one, and without a partition that queue is done.
create function ${s}.sweep(p_queue_id uuid, p_after text)
returns table (busy boolean, removed bigint, queue_id uuid, after text)
language plpgsql ${FUNCTION_SETTINGS} as $$
#variable_conflict use_column
declare
  v_queue ${s}.queue;
  v_has_groups boolean;
  v_partition record;
  v_left bigint := ${MESSAGES_PER_STEP};
  v_more boolean;
  v_count integer := 0;
  v_swept integer := 0;
  v_now timestamptz := clock_timestamp();
  v_kept_from timestamptz; -- what was stored before is too old
  v_known_from timestamptz; -- what was accepted up to then makes no duplicates
  v_completed_for interval;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('queen_mesh sweep of ${s}', 0)) then
    return query select true, 0::bigint, null::uuid, null::text;
    return;
  end if;
  select * into v_queue from ${s}.queue
    where (p_queue_id is null or id > p_queue_id or (id = p_queue_id and p_after is not null))
      and (tenant is null or retention_seconds > 0 or completed_retention_seconds > 0)
    order by id limit 1
    for key share;
  if not found then
    return query select false, 0::bigint, null::uuid, null::text;
    return;
  end if;
  if v_queue.tenant is null then
    v_more := ${s}.purge(v_queue.id);
    return query select false, 0::bigint, v_queue.id, case when v_more then '' end;
    return;
  end if;
  if v_queue.id is distinct from p_queue_id then
    p_after := '';
    if not v_queue.queue_mode_used then
      v_queue.queue_mode_used := exists (
        select from ${s}.partition join ${s}.cursor on cursor.partition_id = partition.id
          where partition.queue_id = v_queue.id and consumer_group = '${QUEUE_MODE}'
            and (committed > 0 or lease_end > 0)
      );
      update ${s}.queue set queue_mode_used = true
        where id = v_queue.id and v_queue.queue_mode_used;
    end if;
  end if;
  v_kept_from := case when v_queue.retention_seconds > 0
    then v_now - v_queue.retention_seconds * interval '1 second' else '-infinity' end;
  v_known_from := v_now - v_queue.dedup_window_seconds * interval '1 second';
  v_completed_for := v_queue.completed_retention_seconds * interval '1 second';
  v_has_groups := exists (select from ${s}.consumer_group where queue_id = v_queue.id);
  for v_partition in
    -- Most partitions have nothing to remove, which a look into each of a few indexes tells.
    select page.id, page.name,
        coalesce(oldest.created_at < v_kept_from, false)
          or exists (select from ${s}.swept
            where partition_id = page.id and accepted_at <= v_known_from)
          or coalesce(oldest.number <= done.committed, false) and (
            exists (select from ${s}.completion
              where partition_id = page.id and number >= oldest.number
                and seen_at <= v_now - v_completed_for)
            or not exists (select from ${s}.completion
              where partition_id = page.id
                and (number >= done.committed or seen_at > v_now - 0.1 * v_completed_for))
          ) as has_work
      from (
        select id, name from ${s}.partition
          where queue_id = v_queue.id and name > p_after
          order by name limit ${PARTITIONS_PER_STEP}
      ) page
      left join lateral (
        select number, created_at from ${s}.message
          where partition_id = page.id order by number limit 1
      ) oldest on true
      left join lateral (
        select min(committed) as committed from ${s}.cursor
          where partition_id = page.id and v_completed_for > interval '0'
            and oldest.number is not null and ${countsForCompletion("v_queue", "v_has_groups")}
      ) done on true
      order by page.name
  loop
    if v_partition.has_work then
      v_left := v_left - ${s}.sweep_partition(v_queue, v_has_groups, v_partition.id, v_left);
      v_swept := v_swept + 1;
    end if;
    v_count := v_count + 1;
    exit when v_left = 0; -- this partition may hold more
    p_after := v_partition.name;
    exit when v_swept = ${SWEPT_PER_STEP};
  end loop;
  return query select false, ${MESSAGES_PER_STEP} - v_left, v_queue.id,
    case when v_left = 0 or v_swept = ${SWEPT_PER_STEP} or v_count = ${PARTITIONS_PER_STEP}
      then p_after end;
end $$`,
];
