/**
 * Which partitions a group can take from: what the rings of the hot list are seeded with.
 *
 * @module
 */

import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import type { TenantId } from "./store.ts";

/** Whose candidates, and how many. */
export interface CandidatesQuery {
  /** The tenant. */
  readonly tenant: TenantId;
  /** The queue. */
  readonly queue: string;
  /** The consumer group; that of queue mode for none. */
  readonly group: string;
  /** At most this many. */
  readonly countMax: number;
}

/** The partitions whose cursor is ready now, those that have waited longest first. */
export async function loadCandidates(
  pool: Pool,
  schema: string,
  { tenant, queue, group, countMax }: CandidatesQuery,
): Promise<readonly string[]> {
  const rows = await pool.query(
    `select name from ${schema}.candidates($1::uuid, $2::text, $3::text, $4::integer) name`,
    [tenant, queue, group, String(countMax)],
  );
  return rows.map((row) => row["name"] as string);
}

/** What the schema needs for {@linkcode loadCandidates}. */
export const candidatesFunctions = (s: string): readonly string[] => [
  `
create function ${s}.candidates(p_tenant uuid, p_queue text, p_group text, p_count integer)
returns setof text stable language plpgsql ${FUNCTION_SETTINGS} as $$
begin
  return query select partition.name
    from ${s}.cursor join ${s}.partition on partition.id = cursor.partition_id
    where cursor.queue_id = (select id from ${s}.queue where tenant = p_tenant and name = p_queue)
      and consumer_group = p_group and ready_at <= clock_timestamp()
    order by ready_at limit p_count;
end $$`,
];
