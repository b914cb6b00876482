/**
 * Claiming batches.
 *
 * @module
 */

import { QUEUE_MODE } from "./names.ts";
import { arrayLiteral } from "./array_literal.ts";
import type { Row } from "./connection.ts";
import { FUNCTION_SETTINGS } from "./function_settings.ts";
import { recordGroup } from "./groups.ts";
import { isUuid } from "./lease.ts";
import type { Pool } from "./pool.ts";
import { DEFAULT_LEASE_SECONDS } from "./push.ts";
import { takeable, WINDOW_MESSAGES } from "./ready.ts";
import type {
  DelayedPartition,
  PartitionName,
  PoppedBatch,
  PoppedMessage,
  PopQuery,
  PopResult,
  TenantId,
} from "./store.ts";

export { isUuid };

export { QUEUE_MODE };

/** What a pop is made of beside the pool. */
export interface PopParts {
  /** The tenant. */
  readonly tenant: TenantId;
  /** What it asks for. */
  readonly query: PopQuery;
  /** The clock by which it says when it arrived, in milliseconds. */
  readonly now: () => number;
}

/** Claims a batch of each of up to `partitions` partitions, and records the group at its first pop. */
export async function pop(pool: Pool, schema: string, parts: PopParts): Promise<PopResult> {
  const { tenant, query, now } = parts;
  const { queue, consumerGroup: group = QUEUE_MODE, start = "new" } = query;
  const arrivedAt = query.arrivedAt ?? now();
  const rows = await claim(pool, schema, parts);
  if (!isUnknownGroup(rows)) return toPopResult(queue, rows);
  const waitedMs = () => now() - arrivedAt;
  await recordGroup(pool, schema, { tenant, queue, group, start, waitedMs });
  return toPopResult(queue, (await claim(pool, schema, parts)).filter((row) => !isUnknown(row)));
}

/** Makes a pop's queue and records its group, if they are not there yet, and claims nothing. */
export async function beginGroup(pool: Pool, schema: string, parts: PopParts): Promise<void> {
  await pop(pool, schema, { ...parts, query: { ...parts.query, partitions: 0 } });
}

function claim(pool: Pool, schema: string, { tenant, query }: PopParts): Promise<readonly Row[]> {
  return pool.query(
    `select * from ${schema}.pop($1::uuid, $2::text, $3::text, $4::text[], $5::text, $6::integer,
      $7::bigint, $8::integer, $9::integer, $10::boolean)`,
    [
      tenant,
      query.queue,
      query.partition ?? null,
      arrayLiteral(query.candidates ?? []),
      query.consumerGroup ?? QUEUE_MODE,
      String(query.batch),
      String(query.bytesMax ?? Number.MAX_SAFE_INTEGER),
      String(query.partitions ?? 1),
      query.leaseSeconds === undefined ? null : String(query.leaseSeconds),
      query.autoAck,
    ],
  );
}

/** Whether a pop says that its group has not been recorded. */
export function isUnknownGroup([row]: readonly Row[]): boolean {
  return row !== undefined && isUnknown(row);
}

/** A row of nothing says that the group has not been recorded. */
function isUnknown(row: Row): boolean {
  return row["partition"] === null && row["id"] === null;
}

/** What a pop found. Each batch comes as a head and its messages; at last comes what can be taken from besides. */
export function toPopResult(queue: string, rows: readonly Row[]): PopResult {
  const batches: (PoppedBatch & { readonly messages: PoppedMessage[] })[] = [];
  const left: PartitionName[] = [];
  const delayed: DelayedPartition[] = [];
  let more: PartitionName | undefined;
  for (const row of rows) {
    const partition = row["partition"] as string | null;
    if (partition === null) {
      batches.at(-1)!.messages.push(toMessage(row));
      continue;
    }
    const name = { queue, partition };
    const partitionId = row["partition_id"] as string | null;
    if (partitionId === null) {
      more = name;
      continue;
    }
    const leaseId = row["lease_id"] as string | null;
    batches.push({
      partition,
      partitionId,
      ...(leaseId === null ? {} : { leaseId }),
      messages: [],
    });
    const delayMs = row["available_in_ms"] as number | null;
    if (delayMs === 0) left.push(name);
    else if (delayMs !== null) delayed.push({ ...name, delayMs });
  }
  const [batch, ...others] = batches;
  return {
    batch,
    more,
    ...(others.length === 0 ? {} : { others }),
    ...(left.length === 0 ? {} : { left }),
    ...(delayed.length === 0 ? {} : { delayed }),
  };
}

function toMessage(row: Row): PoppedMessage {
  return {
    id: row["id"] as string,
    transactionId: row["transaction_id"] as string,
    payload: row["payload"] as string,
    createdAt: row["created_at"] as string,
    ...(row["encrypted"] === true ? { encrypted: true } : {}),
  };
}

/** What the schema needs for {@linkcode pop}. */
export const popFunctions = (s: string): readonly string[] => [
  `
-- Claims a batch of a cursor that the caller has locked: up to p_batch messages and p_bytes of
-- payload, but one message at least where p_has_one says so. p_end is null where nothing fits.
create function ${s}.claim(
  p_queue ${s}.queue, p_cursor ${s}.cursor, p_start timestamptz, p_mature timestamptz,
  p_window timestamptz, p_batch bigint, p_bytes bigint, p_has_one boolean,
  p_lease_seconds integer, p_auto_ack boolean,
  out p_end bigint, out p_count bigint, out p_size bigint, out p_lease_id uuid,
  out p_available_in_ms integer
)
language plpgsql as $$
declare
  v_limit bigint := 9223372036854775807;
  v_number bigint;
  v_created_at timestamptz;
  v_last bigint;
  v_now timestamptz;
  v_backlog text;
begin
  if p_queue.window_buffer > 0 then
    v_limit := p_cursor.released_to;
    select number, created_at into v_number, v_created_at from ${s}.message
      where partition_id = p_cursor.partition_id
        and number > greatest(p_cursor.committed, p_cursor.released_to)
        and number <> all (p_cursor.settled) and created_at > p_start
      order by number limit 1;
    select last_number into v_last from ${s}.partition where id = p_cursor.partition_id;
    if v_created_at <= p_window
      or v_last - v_number + 1 - cardinality(p_cursor.settled) >= ${WINDOW_MESSAGES} then
      v_limit := v_last;
    end if;
  end if;
  select max(number), count(*), sum(size) into p_end, p_count, p_size from (
    select number, size, row_number() over upwards as position, sum(size) over upwards as bytes
    from (
      select number, octet_length(payload) as size from ${s}.message
        where partition_id = p_cursor.partition_id and number > p_cursor.committed
          and number <= v_limit and number <> all (p_cursor.settled)
          and created_at > p_start and created_at <= p_mature
        order by number limit p_batch
    ) message
    window upwards as (order by number)
  ) message where bytes <= p_bytes or (p_has_one and position = 1);
  if p_end is null then
    return;
  end if;
  if p_queue.window_buffer = 0 then
    v_limit := p_end;
  end if;
  v_now := clock_timestamp();
  if p_auto_ack then
    v_backlog := ${s}.backlog(p_cursor.partition_id, p_end);
    p_cursor.settled := array(select number from unnest(p_cursor.settled) number where number > p_end);
    p_cursor.released_to := greatest(p_cursor.released_to, v_limit);
    if v_backlog <> 'none' then
      p_cursor.ready_at := ${s}.next_ready(p_queue, p_cursor.partition_id, p_end, p_cursor.settled,
        p_cursor.released_to, v_now);
    else
      p_cursor.ready_at := null;
    end if;
    p_available_in_ms := ${s}.available_in_ms(p_queue, v_backlog, p_cursor.ready_at, v_now);
    update ${s}.cursor
      set committed = p_end, lease_end = p_end, lease_id = null, lease_expires_at = null, tries = 0,
        settled = p_cursor.settled, released_to = p_cursor.released_to, ready_at = p_cursor.ready_at
      where partition_id = p_cursor.partition_id and consumer_group = p_cursor.consumer_group;
  else
    p_lease_id := gen_random_uuid();
    v_now := v_now + coalesce(p_lease_seconds, p_queue.lease_time) * interval '1 second';
    update ${s}.cursor
      set lease_id = p_lease_id, lease_end = p_end, lease_expires_at = v_now, ready_at = v_now,
        released_to = greatest(released_to, v_limit)
      where partition_id = p_cursor.partition_id and consumer_group = p_cursor.consumer_group;
  end if;
end $$`,
  `
-- Returns nothing where there is nothing to take; else, for each partition, a head, followed by the
-- messages; and at last another partition that could have been taken from, without an id. One row
-- of nulls says that the group has not been recorded, or not with all its cursors.
create function ${s}.pop(
  p_tenant uuid, p_queue text, p_partition text, p_candidates text[], p_group text,
  p_batch integer, p_bytes bigint, p_partitions integer, p_lease_seconds integer, p_auto_ack boolean
)
returns table (
  partition text, partition_id uuid, lease_id uuid, available_in_ms integer,
  id uuid, transaction_id text, payload text, encrypted boolean, created_at text
)
language plpgsql ${FUNCTION_SETTINGS}
  set enable_sort = off -- the cursors that are ready come in the order of their index
  set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_queue ${s}.queue;
  v_start timestamptz := '-infinity';
  v_now timestamptz := clock_timestamp();
  v_mature timestamptz := 'infinity';
  v_window timestamptz := 'infinity';
  v_names text[];
  v_tried integer := 0;
  v_taken uuid[] := '{}';
  v_count bigint := 0;
  v_bytes bigint := 0;
  v_is_open boolean := false;
  v_claimed record;
  v_passed_over uuid;
  v_cursor ${s}.cursor;
  v_ready cursor for
    select cursor.* from ${s}.cursor
      where queue_id = v_queue.id and consumer_group = p_group and ready_at <= v_now
        and ${takeable(s)}
      order by ready_at
      for no key update skip locked;
begin
  select * into v_queue from ${s}.queue where tenant = p_tenant and name = p_queue;
  if not found then
    insert into ${s}.queue (tenant, name, lease_time)
      values (p_tenant, p_queue, ${DEFAULT_LEASE_SECONDS}) on conflict do nothing;
    select * into v_queue from ${s}.queue where tenant = p_tenant and name = p_queue;
  end if;
  if p_group <> '${QUEUE_MODE}' then
    select start_at into v_start from ${s}.consumer_group
      where queue_id = v_queue.id and name = p_group and made_to is null;
    if not found then
      return query select null::text, null::uuid, null::uuid, null::integer,
        null::uuid, null::text, null::text, null::boolean, null::text;
      return;
    end if;
  end if;
  if v_queue.delayed_processing > 0 then
    v_mature := v_now - v_queue.delayed_processing * interval '1 second';
  end if;
  if v_queue.window_buffer > 0 then
    v_window := v_now - v_queue.window_buffer * interval '1 second';
  end if;
  v_names := case when p_partition is null then p_candidates else array[p_partition] end;

  loop
    exit when v_count >= p_batch or cardinality(v_taken) >= p_partitions;
    if v_tried < cardinality(v_names) then
      v_tried := v_tried + 1;
      select cursor.* into v_cursor
        from ${s}.partition join ${s}.cursor on cursor.partition_id = partition.id
        where partition.queue_id = v_queue.id and partition.name = v_names[v_tried]
          and consumer_group = p_group and ready_at <= v_now
          and ${takeable(s)}
        for no key update of cursor skip locked;
      continue when not found;
    else
      exit when p_partition is not null;
      if not v_is_open then
        open v_ready;
        v_is_open := true;
      end if;
      fetch v_ready into v_cursor;
      exit when not found;
    end if;
    continue when v_cursor.partition_id = any (v_taken);
    select * into v_claimed from ${s}.claim(v_queue, v_cursor, v_start, v_mature, v_window,
      p_batch - v_count, p_bytes - v_bytes, v_count = 0, p_lease_seconds, p_auto_ack);
    if v_claimed.p_end is null then
      continue when v_count = 0; -- a sweep took them just now
      -- It does not fit any more. Meanwhile nobody else could take it.
      v_passed_over := v_cursor.partition_id;
      exit;
    end if;
    v_taken := v_taken || v_cursor.partition_id;
    v_count := v_count + v_claimed.p_count;
    v_bytes := v_bytes + v_claimed.p_size;
    return query select partition.name, v_cursor.partition_id, v_claimed.p_lease_id,
      v_claimed.p_available_in_ms, null::uuid, null::text, null::text, null::boolean, null::text
      from ${s}.partition where id = v_cursor.partition_id;
    return query select null::text, null::uuid, null::uuid, null::integer,
      id, transaction_id, payload, encrypted,
      to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
      from ${s}.message
      where partition_id = v_cursor.partition_id and number > v_cursor.committed
        and number <= v_claimed.p_end and number <> all (v_cursor.settled)
        and created_at > v_start
      order by number;
  end loop;
  if v_is_open then
    close v_ready;
  end if;
  if v_count = 0 then
    if p_partition is null then
      perform ${s}.clear_ready(v_queue, p_group, v_now, v_start, v_mature, v_window);
    end if;
  elsif v_passed_over is not null then
    return query select partition.name, null::uuid, null::uuid, null::integer,
        null::uuid, null::text, null::text, null::boolean, null::text
      from ${s}.partition where id = v_passed_over;
  elsif p_partition is null then
    return query select partition.name, null::uuid, null::uuid, null::integer,
        null::uuid, null::text, null::text, null::boolean, null::text
      from ${s}.cursor join ${s}.partition on partition.id = cursor.partition_id
      where cursor.queue_id = v_queue.id and consumer_group = p_group and ready_at <= v_now
        and cursor.partition_id <> all (v_taken) and ${takeable(s)}
      order by ready_at limit 1;
  end if;
end $$`,
];
