/**
 * Claiming a batch, and giving it back.
 *
 * @module
 */

import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import { DEFAULT_LEASE_SECONDS } from "./push.ts";
import type {
  PartitionName,
  PoppedBatch,
  PoppedMessage,
  PopQuery,
  PopResult,
  TenantId,
} from "./store.ts";

/** The group of pops that name none. */
export const QUEUE_MODE = "__QUEUE_MODE__";

/** Claims a batch of one partition. */
export async function pop(
  pool: Pool,
  schema: string,
  { tenant, query }: { readonly tenant: TenantId; readonly query: PopQuery },
): Promise<PopResult> {
  const [head, ...rows] = await pool.query(
    `select * from ${schema}.pop($1::uuid, $2::text, $3::text, $4::text, $5::integer, $6::bigint,
      $7::integer, $8::boolean)`,
    [
      tenant,
      query.queue,
      query.partition ?? null,
      QUEUE_MODE,
      String(query.batch),
      String(query.bytesMax ?? Number.MAX_SAFE_INTEGER),
      query.leaseSeconds === undefined ? null : String(query.leaseSeconds),
      query.autoAck,
    ],
  );
  if (!head) return { batch: undefined, more: undefined };
  const more = head["more"] as string | null;
  return {
    batch: toBatch(head, rows),
    more: more === null ? undefined : { queue: query.queue, partition: more },
  };
}

function toBatch(
  head: Readonly<Record<string, unknown>>,
  rows: readonly Readonly<Record<string, unknown>>[],
): PoppedBatch {
  const leaseId = head["lease_id"] as string | null;
  return {
    partition: head["partition"] as string,
    partitionId: head["partition_id"] as string,
    ...(leaseId === null ? {} : { leaseId }),
    messages: rows.map((row): PoppedMessage => ({
      id: row["id"] as string,
      transactionId: row["transaction_id"] as string,
      payload: row["payload"] as string,
      createdAt: row["created_at"] as string,
    })),
  };
}

/** Whether a text can be the id of something: PostgreSQL fails on what is no UUID. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);
}

/** Ends a lease free of charge. Resolves to its partition, or undefined where it held none. */
export async function giveBack(
  pool: Pool,
  schema: string,
  { tenant, leaseId }: { readonly tenant: TenantId; readonly leaseId: string },
): Promise<PartitionName | undefined> {
  if (!isUuid(leaseId)) return undefined;
  const [row] = await pool.query(`select * from ${schema}.give_back($1::uuid, $2::uuid)`, [
    tenant,
    leaseId,
  ]);
  return row && { queue: row["queue"] as string, partition: row["partition"] as string };
}

/** Whether something waits for a cursor's group: one look into an index. */
const hasMessage = (s: string): string =>
  `(
    select true from ${s}.message
      where partition_id = cursor.partition_id and number > cursor.committed
        and number <> all (cursor.settled)
      limit 1
  ) is true`;

/** What the schema needs for {@linkcode pop} and {@linkcode giveBack}. */
export const popFunctions = (s: string): readonly string[] => [
  `
-- What a group that is done up to p_committed has left: 'some', 'none', or 'unknown' while a push
-- is under way. The caller holds the cursor; after 'none' no push can be numbered before it commits.
create function ${s}.backlog(p_partition_id uuid, p_committed bigint)
returns text language plpgsql as $$
declare
  v_last bigint;
begin
  select last_number into v_last from ${s}.partition where id = p_partition_id;
  if v_last > p_committed then
    return 'some';
  end if;
  select last_number into v_last from ${s}.partition where id = p_partition_id
    for share skip locked;
  return case when v_last is null then 'unknown' when v_last > p_committed then 'some' else 'none' end;
end $$`,
  `
-- Makes idle the oldest cursors that look ready where nothing waits: a push was rolled back after
-- an ack had met it half-way. It locks a cursor only once it knows that there is nothing to take
-- from it and that no push is under way, so that no pop is kept from a message.
create function ${s}.clear_ready(p_queue_id uuid, p_group text, p_now timestamptz)
returns void language plpgsql as $$
declare
  v_partition_id uuid;
  v_last bigint;
begin
  for v_partition_id in
    select partition_id from ${s}.cursor
      where queue_id = p_queue_id and consumer_group = p_group and ready_at <= p_now
        and not (${hasMessage(s)})
      order by ready_at limit 10
  loop
    select last_number into v_last from ${s}.partition where id = v_partition_id
      for share skip locked;
    continue when not found;
    update ${s}.cursor
      set ready_at = null, committed = v_last, settled = '{}',
        lease_id = null, lease_end = v_last, lease_expires_at = null
      where partition_id = v_partition_id and consumer_group = p_group and ready_at <= p_now
        and not (${hasMessage(s)});
  end loop;
end $$`,
  `
-- Returns nothing where there is nothing to take, and else a head, followed by the messages.
create function ${s}.pop(
  p_tenant uuid, p_queue text, p_partition text, p_group text, p_batch integer, p_bytes bigint,
  p_lease_seconds integer, p_auto_ack boolean
)
returns table (
  partition text, partition_id uuid, lease_id uuid, more text,
  id uuid, transaction_id text, payload text, created_at text
)
language plpgsql ${FUNCTION_SETTINGS} as $$
#variable_conflict use_column
declare
  v_queue ${s}.queue;
  v_partition_id uuid;
  v_cursor ${s}.cursor;
  v_now timestamptz := clock_timestamp();
  v_end bigint;
  v_backlog text;
  v_lease_id uuid;
  v_more text;
begin
  select * into v_queue from ${s}.queue where tenant = p_tenant and name = p_queue;
  if not found then
    insert into ${s}.queue (tenant, name, lease_time)
      values (p_tenant, p_queue, ${DEFAULT_LEASE_SECONDS}) on conflict do nothing;
    return;
  end if;
  if p_partition is null then
    select * into v_cursor from ${s}.cursor
      where queue_id = v_queue.id and consumer_group = p_group and ready_at <= v_now
        and ${hasMessage(s)}
      order by ready_at limit 1
      for no key update skip locked;
  else
    select id into v_partition_id from ${s}.partition
      where queue_id = v_queue.id and name = p_partition;
    select * into v_cursor from ${s}.cursor
      where partition_id = v_partition_id and consumer_group = p_group and ready_at <= v_now
        and ${hasMessage(s)}
      for no key update skip locked;
  end if;
  if not found then
    if p_partition is null then
      perform ${s}.clear_ready(v_queue.id, p_group, v_now);
    end if;
    return;
  end if;

  select max(number) into v_end from (
    select number, row_number() over upwards as position,
      sum(octet_length(payload)) over upwards as bytes
    from (
      select number, payload from ${s}.message
        where partition_id = v_cursor.partition_id and number > v_cursor.committed
          and number <> all (v_cursor.settled)
        order by number limit p_batch
    ) message
    window upwards as (order by number)
  ) message where bytes <= p_bytes or position = 1;
  if v_end is null then -- a sweep took them just now
    return;
  end if;
  if p_partition is null then
    select partition.name into v_more
      from ${s}.cursor join ${s}.partition on partition.id = cursor.partition_id
      where cursor.queue_id = v_queue.id and consumer_group = p_group and ready_at <= v_now
        and cursor.partition_id <> v_cursor.partition_id and ${hasMessage(s)}
      order by ready_at limit 1;
    select partition.name into p_partition from ${s}.partition where id = v_cursor.partition_id;
  end if;
  v_now := clock_timestamp();
  if p_auto_ack then
    v_backlog := ${s}.backlog(v_cursor.partition_id, v_end);
    update ${s}.cursor
      set committed = v_end, lease_end = v_end, lease_id = null, lease_expires_at = null, tries = 0,
        settled = array(select number from unnest(settled) number where number > v_end),
        ready_at = case when v_backlog <> 'none' then v_now end
      where partition_id = v_cursor.partition_id and consumer_group = p_group;
    if v_backlog = 'some' and v_more is null then
      v_more := p_partition;
    end if;
  else
    v_lease_id := gen_random_uuid();
    v_now := v_now + coalesce(p_lease_seconds, v_queue.lease_time) * interval '1 second';
    update ${s}.cursor
      set lease_id = v_lease_id, lease_end = v_end, lease_expires_at = v_now, ready_at = v_now
      where partition_id = v_cursor.partition_id and consumer_group = p_group;
  end if;
  return query select p_partition, v_cursor.partition_id, v_lease_id, v_more,
    null::uuid, null::text, null::text, null::text;
  return query select null::text, null::uuid, null::uuid, null::text,
    id, transaction_id, payload,
    to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    from ${s}.message
    where partition_id = v_cursor.partition_id and number > v_cursor.committed and number <= v_end
      and number <> all (v_cursor.settled)
    order by number;
end $$`,
  `
create function ${s}.give_back(p_tenant uuid, p_lease_id uuid)
returns table (queue text, partition text)
language plpgsql ${FUNCTION_SETTINGS} as $$
#variable_conflict use_column
declare
  v_cursor ${s}.cursor;
begin
  select cursor.* into v_cursor
    from ${s}.cursor join ${s}.queue on queue.id = cursor.queue_id
    where lease_id = p_lease_id and queue.tenant = p_tenant
    for no key update of cursor;
  if not found then
    return;
  end if;
  update ${s}.cursor
    set lease_id = null, lease_end = committed, lease_expires_at = null,
      ready_at = clock_timestamp()
    where partition_id = v_cursor.partition_id and consumer_group = v_cursor.consumer_group;
  return query select queue.name, partition.name
    from ${s}.partition join ${s}.queue on queue.id = partition.queue_id
    where partition.id = v_cursor.partition_id;
end $$`,
];
