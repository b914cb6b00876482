/**
 * Consumer groups: from where each one starts.
 *
 * @module
 */

import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import type { SubscriptionStart, TenantId } from "./store.ts";

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
}

/**
 * Records a group and makes its cursors. Where it is recorded already, nothing changes.
 *
 * Its start is the moment at which its first pop arrived, by PostgreSQL's clock: what that clock
 * says as the statement comes in, less the time that the pop has been here. To open the connection,
 * or to wait for one, is over by the time that this is measured.
 */
export async function recordGroup(
  pool: Pool,
  schema: string,
  { tenant, queue, group, start, waitedMs }: GroupRecord,
): Promise<void> {
  await pool.transaction(async (send) => {
    await send(
      `select from ${schema}.record_group($1::uuid, $2::text, $3::text, $4::text::timestamptz,
        $5::text::double precision)`,
      [tenant, queue, group, startText(start), String(waitedMs())],
    );
  });
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
create function ${s}.number_at(p_partition_id uuid, p_last bigint, p_at timestamptz)
returns bigint language plpgsql as $$
declare
  v_low bigint := 0; -- stored up to p_at, as all below it
  v_high bigint := p_last + 1; -- stored later, as all above it
  v_middle bigint;
  v_number bigint;
  v_created_at timestamptz;
begin
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
#variable_conflict use_column
declare
  v_start timestamptz :=
    coalesce(p_start, statement_timestamp() - p_waited_ms * interval '1 millisecond');
  v_queue_id uuid;
  v_quiet uuid[];
  v_now timestamptz;
begin
  -- Whoever makes a partition holds the queue's row: either this sees the partition, or that sees
  -- the group.
  select id into v_queue_id from ${s}.queue where tenant = p_tenant and name = p_queue for update;
  insert into ${s}.consumer_group (queue_id, name, start_at)
    select v_queue_id, p_group, v_start where v_queue_id is not null
    on conflict do nothing;
  if not found then
    return;
  end if;
  -- A push that is under way may have looked for cursors before these were there. Where one is, the
  -- cursor is ready from the start, and a pop looks.
  select coalesce(array_agg(id), '{}') into v_quiet from (
    select id from ${s}.partition where queue_id = v_queue_id for share skip locked
  ) partition;
  v_now := clock_timestamp();
  insert into ${s}.cursor (partition_id, consumer_group, queue_id, committed, ready_at)
    select partition.id, p_group, v_queue_id, committed,
      case when is_quiet is null or last_number > committed then v_now end
    from ${s}.partition
    left join (select id, true as is_quiet from unnest(v_quiet) id) quiet on quiet.id = partition.id
    cross join lateral (
      select case
        when v_start = '-infinity' then 0
        when last_at <= v_start then last_number
        else ${s}.number_at(partition.id, last_number, v_start)
      end as committed
    ) done
    where partition.queue_id = v_queue_id;
end $$`,
];
