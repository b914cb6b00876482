/**
 * Leases after a pop: giving them back, and making them longer.
 *
 * @module
 */

import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import type { PartitionName, TenantId } from "./store.ts";

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

/**
 * Makes a lease last for `seconds` from now on, never shorter than it was. Resolves to when it runs
 * out then, or to undefined where it is unknown or has run out.
 */
export async function extendLease(
  pool: Pool,
  schema: string,
  { tenant, leaseId, seconds }: {
    readonly tenant: TenantId;
    readonly leaseId: string;
    readonly seconds: number;
  },
): Promise<string | undefined> {
  if (!isUuid(leaseId)) return undefined;
  const [row] = await pool.query(
    `select ${schema}.extend_lease($1::uuid, $2::uuid, $3::integer) as expires_at`,
    [tenant, leaseId, String(seconds)],
  );
  return (row!["expires_at"] as string | null) ?? undefined;
}

/** What the schema needs for {@linkcode giveBack} and {@linkcode extendLease}. */
export const leaseFunctions = (s: string): readonly string[] => [
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
  `
create function ${s}.extend_lease(p_tenant uuid, p_lease_id uuid, p_seconds integer)
returns text language plpgsql ${FUNCTION_SETTINGS} as $$
declare
  v_cursor ${s}.cursor;
  v_now timestamptz;
begin
  select cursor.* into v_cursor
    from ${s}.cursor join ${s}.queue on queue.id = cursor.queue_id
    where lease_id = p_lease_id and queue.tenant = p_tenant
    for no key update of cursor;
  -- Only now: the row may have been waited for.
  v_now := clock_timestamp();
  if v_cursor.lease_id is null or v_cursor.lease_expires_at <= v_now then
    return null;
  end if;
  v_now := greatest(v_cursor.lease_expires_at, v_now + p_seconds * interval '1 second');
  update ${s}.cursor set lease_expires_at = v_now, ready_at = v_now
    where partition_id = v_cursor.partition_id and consumer_group = v_cursor.consumer_group;
  return to_char(v_now at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
end $$`,
];
