/**
 * Consumer groups: from where each one starts.
 *
 * @module
 */

import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import type { SubscriptionStart, TenantId } from "./store.ts";

/** So many cursors are made by one statement, which takes well below a second. */
const CURSORS_MAX = 5000;

/** A group that is to be recorded. */
export interface GroupRecord {
  /** The tenant. */
  readonly tenant: TenantId;
  /** The queue, which must exist. */
  readonly queue: string;
  /** The group's name. */
  readonly group: string;
  /** From where it starts. */
  readonly start: SubscriptionStart;
  /** For how long its first pop has been here, in milliseconds. */
  readonly waitedMs: () => number;
  /** So many cursors are made by one statement. */
  readonly cursorsMax?: number;
}

/**
 * Records a group and makes its cursors. What of it was done already stays as it is.
 *
 * Its start is the moment at which its first pop arrived, by PostgreSQL's clock: what that clock
 * says as the statement comes in, less the time that the pop has been here. To open the connection,
 * or to wait for one, is over by the time that this is measured.
 */
export async function recordGroup(
  pool: Pool,
  schema: string,
  { tenant, queue, group, start, waitedMs, cursorsMax = CURSORS_MAX }: GroupRecord,
): Promise<void> {
  await pool.transaction(async (send) => {
    await send(
      `select from ${schema}.record_group($1::uuid, $2::text, $3::text, $4::text::timestamptz,
        $5::text::double precision)`,
      [tenant, queue, group, startText(start), String(waitedMs())],
    );
  });
  for (let isDone = false; !isDone;) {
    const [row] = await pool.query(
      `select ${schema}.make_cursors($1::uuid, $2::text, $3::text, $4::integer) as is_done`,
      [tenant, queue, group, String(cursorsMax)],
    );
    isDone = row!["is_done"] as boolean;
  }
}

function startText(start: SubscriptionStart): string | null {
  if (start === "all") return "-infinity";
  return start === "new" ? null : start.at;
}

/** What the schema needs for {@linkcode recordGroup}. */
export const groupFunctions = (s: string): readonly string[] => [
  `
-- The last number of a partition that was stored up to p_at. created_at never goes back within a
-- partition, so that halving finds it.
create function ${s}.number_up_to(
  p_partition_id uuid, p_last bigint, p_last_at timestamptz, p_at timestamptz
)
returns bigint language plpgsql as $$
declare
  v_low bigint := 0; -- stored up to p_at, as all below it
  v_high bigint := p_last + 1; -- stored later, as all above it
  v_middle bigint;
  v_number bigint;
  v_created_at timestamptz;
begin
  if p_at = '-infinity' or p_last_at <= p_at then
    return case when p_at = '-infinity' then 0 else p_last end;
  end if;
  while v_high - v_low > 1 loop
    v_middle := (v_low + v_high) / 2;
    select number, created_at into v_number, v_created_at from ${s}.message
      where partition_id = p_partition_id and number >= v_middle order by number limit 1;
    if v_created_at <= p_at then
      v_low := v_number;
    else
      v_high := v_middle;
    end if;
  end loop;
  return v_low;
end $$`,
  `
create function ${s}.record_group(
  p_tenant uuid, p_queue text, p_group text, p_start timestamptz, p_waited_ms double precision
)
returns void language plpgsql ${FUNCTION_SETTINGS} as $$
declare
  v_start timestamptz :=
    coalesce(p_start, statement_timestamp() - p_waited_ms * interval '1 millisecond');
  v_queue_id uuid;
begin
  -- Whoever makes a partition holds the queue's row: what is made after this sees the group, and
  -- whoever makes the group's cursors sees what was made before.
  select id into v_queue_id from ${s}.queue where tenant = p_tenant and name = p_queue for update;
  insert into ${s}.consumer_group (queue_id, name, start_at)
    select v_queue_id, p_group, v_start where v_queue_id is not null
    on conflict (queue_id, name) do update set start_at = v_start
      -- Of first pops that arrive together the earliest counts, while nothing follows from the start
      -- of another one yet.
      where p_start is null and consumer_group.made_to = ''
        and consumer_group.start_at between v_start and statement_timestamp();
end $$`,
  `
-- Makes the cursors of a group for some of the partitions that were there before it. Returns whether
-- all have one now.
create function ${s}.make_cursors(p_tenant uuid, p_queue text, p_group text, p_count integer)
returns boolean language plpgsql ${FUNCTION_SETTINGS} as $$
declare
  v_group ${s}.consumer_group;
  v_ids uuid[];
  v_last text;
  v_now timestamptz;
begin
  select consumer_group.* into v_group
    from ${s}.consumer_group join ${s}.queue on queue.id = consumer_group.queue_id
    where queue.tenant = p_tenant and queue.name = p_queue and consumer_group.name = p_group
    for no key update of consumer_group;
  if v_group.made_to is null then
    return true;
  end if;
  select array_agg(id), max(name) into v_ids, v_last from (
    select id, name from ${s}.partition
      where queue_id = v_group.queue_id and name > v_group.made_to order by name limit p_count
  ) partition;
  v_now := clock_timestamp();
  -- While these rows are held no push can be under way; whoever comes later sees the cursors.
  insert into ${s}.cursor (partition_id, consumer_group, queue_id, committed, ready_at)
    select id, p_group, v_group.queue_id, committed,
      case when last_number > committed then v_now end
    from (
      select * from ${s}.partition where id = any (v_ids) for share skip locked
    ) partition cross join lateral ${s}.number_up_to(partition.id, last_number, last_at,
      v_group.start_at) as committed
    on conflict do nothing;
  -- A push that is under way may have looked for cursors already. So a pop has to look.
  insert into ${s}.cursor (partition_id, consumer_group, queue_id, committed, ready_at)
    select id, p_group, v_group.queue_id, committed, v_now
    from ${s}.partition cross join lateral ${s}.number_up_to(partition.id, last_number, last_at,
      v_group.start_at) as committed
    where id = any (v_ids) and not exists (
      select from ${s}.cursor where partition_id = partition.id and consumer_group = p_group)
    on conflict do nothing;
  v_last := case when cardinality(v_ids) = p_count then v_last end;
  update ${s}.consumer_group set made_to = v_last
    where queue_id = v_group.queue_id and name = p_group;
  return v_last is null;
end $$`,
];
