/**
 * Deleting queues.
 *
 * A deleted queue first loses its tenant, in one short transaction: from then on nobody finds it, and
 * its name can be used anew. What it held is removed after that in bounded steps.
 *
 * @module
 */

import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import type { TenantId } from "./store.ts";

/** So many rows of a table are removed in one step. */
const ROWS_PER_STEP = 5000;

/** So many partitions are looked at in one step. */
const PARTITIONS_PER_STEP = 200;

/** Takes a queue away from its tenant. Resolves to its id, or to undefined where there is none. */
export async function deleteQueue(
  pool: Pool,
  schema: string,
  { tenant, queue }: { readonly tenant: TenantId; readonly queue: string },
): Promise<string | undefined> {
  const [row] = await pool.query(
    `update ${schema}.queue set tenant = null where tenant = $1::uuid and name = $2::text
      returning id`,
    [tenant, queue],
  );
  return row?.["id"] as string | undefined;
}

/** Removes some of what a deleted queue has left. Resolves to whether there may be more. */
export async function purge(pool: Pool, schema: string, queueId: string): Promise<boolean> {
  const [row] = await pool.query(`select ${schema}.purge($1::uuid) as more`, [queueId]);
  return row!["more"] as boolean;
}

/** What the schema needs for {@linkcode purge}. */
export const deleteFunctions = (s: string): readonly string[] => [
  `
-- Removes some of what a deleted queue has left, and in the end the queue. Returns whether there may
-- be more; false too where somebody else is at it.
create function ${s}.purge(p_queue_id uuid)
returns boolean language plpgsql ${FUNCTION_SETTINGS} as $$
declare
  v_partitions uuid[];
  v_removed bigint;
begin
  perform from ${s}.queue where id = p_queue_id and tenant is null for update skip locked;
  if not found then
    return false;
  end if;
  -- Waits for the pushes that were under way as the queue was deleted.
  select array_agg(id) into v_partitions from (
    select id from ${s}.partition where queue_id = p_queue_id
      order by id limit ${PARTITIONS_PER_STEP} for update
  ) partition;
  if v_partitions is null then
    delete from ${s}.queue where id = p_queue_id;
    return false;
  end if;
  delete from ${s}.message where ctid = any (array(
    select ctid from ${s}.message where partition_id = any (v_partitions) limit ${ROWS_PER_STEP}
  ));
  get diagnostics v_removed = row_count;
  if v_removed = ${ROWS_PER_STEP} then
    return true;
  end if;
  delete from ${s}.dead_letter where ctid = any (array(
    select ctid from ${s}.dead_letter where partition_id = any (v_partitions) limit ${ROWS_PER_STEP}
  ));
  get diagnostics v_removed = row_count;
  if v_removed = ${ROWS_PER_STEP} then
    return true;
  end if;
  delete from ${s}.swept where ctid = any (array(
    select ctid from ${s}.swept where partition_id = any (v_partitions) limit ${ROWS_PER_STEP}
  ));
  get diagnostics v_removed = row_count;
  if v_removed = ${ROWS_PER_STEP} then
    return true;
  end if;
  -- Waits for the acks that are under way. Without its cursors nothing can be dead-lettered.
  perform from ${s}.cursor where partition_id = any (v_partitions)
    order by partition_id, consumer_group for update;
  delete from ${s}.cursor where partition_id = any (v_partitions);
  delete from ${s}.dead_letter where partition_id = any (v_partitions);
  delete from ${s}.completion where partition_id = any (v_partitions);
  delete from ${s}.partition where id = any (v_partitions);
  return true;
end $$`,
];
