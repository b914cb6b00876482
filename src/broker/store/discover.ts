/**
 * Which queues a pop by namespace and task looks through.
 *
 * @module
 */

import type { Pool } from "./pool.ts";
import { QUEUE_MODE } from "./pop.ts";
import type { DiscoveredQueue, DiscoveryFilter, TenantId } from "./store.ts";

/**
 * The queues that match, those first whose messages have waited longest. One that nothing can be
 * taken from costs one look into an index.
 */
export async function discover(
  pool: Pool,
  schema: string,
  { tenant, filter }: { readonly tenant: TenantId; readonly filter: DiscoveryFilter },
): Promise<readonly DiscoveredQueue[]> {
  const { namespace, task, consumerGroup = QUEUE_MODE } = filter;
  const parameters = [tenant, consumerGroup];
  const conditions: string[] = [];
  for (const [column, value] of Object.entries({ namespace, task })) {
    if (value === undefined) continue;
    parameters.push(value);
    conditions.push(`and ${column} = $${parameters.length}::text`);
  }
  const rows = await pool.query(
    `select name, ready_at is not null or not is_recorded as is_worth_a_pop
      from (
        select name,
          $2::text = '${QUEUE_MODE}' or exists (
            select from ${schema}.consumer_group
              where queue_id = queue.id and consumer_group.name = $2::text
                and made_to is null) as is_recorded,
          (select ready_at from ${schema}.cursor
            where queue_id = queue.id and consumer_group = $2::text
              and ready_at <= clock_timestamp()
            order by ready_at limit 1) as ready_at
        from ${schema}.queue where tenant = $1::uuid ${conditions.join(" ")}
      ) queue order by is_recorded, ready_at, name`,
    parameters,
  );
  return rows.map((row) => ({
    queue: row["name"] as string,
    isWorthAPop: row["is_worth_a_pop"] as boolean,
  }));
}
