/**
 * Claiming batches for several pops by one statement.
 *
 * @module
 */

import { arrayLiteral } from "./array_literal.ts";
import type { Row } from "./connection.ts";
import { recordGroup } from "./groups.ts";
import type { Pool } from "./pool.ts";
import { isUnknownGroup, type PopParts, QUEUE_MODE, toPopResult } from "./pop.ts";
import type { PopQuery, PopResult } from "./store.ts";

/** What several pops of one queue and one group are made of. */
export interface PopTogetherParts extends Pick<PopParts, "tenant" | "now"> {
  /** What they ask for, in the order in which they claim. */
  readonly queries: readonly PopQuery[];
}

/**
 * Claims for one pop after the other, in one transaction, and records the group at its first pops. All
 * of them are of one queue and one group, so that whatever waits for a lock comes before all claims.
 */
export async function popTogether(
  pool: Pool,
  schema: string,
  parts: PopTogetherParts,
): Promise<readonly PopResult[]> {
  const { tenant, queries, now } = parts;
  const [query] = queries;
  if (query === undefined) return [];
  const { queue, consumerGroup: group = QUEUE_MODE, start = "new" } = query;
  // Of first pops that arrive together the earliest counts.
  const arrivedAt = Math.min(
    ...queries.filter((each) => (each.start ?? "new") === start).map((each) =>
      each.arrivedAt ?? now()
    ),
  );
  const rows = await claimTogether(pool, schema, parts);
  const missed = [...queries.keys()].filter((i) => isUnknownGroup(rows[i]!));
  if (missed.length > 0) {
    // Where some have found the group, somebody has recorded it meanwhile.
    if (missed.length === queries.length) {
      const waitedMs = () => now() - arrivedAt;
      await recordGroup(pool, schema, { tenant, queue, group, start, waitedMs });
    }
    const again = missed.map((i) => queries[i]!);
    const found = await claimTogether(pool, schema, { ...parts, queries: again });
    missed.forEach((index, i) => {
      rows[index] = isUnknownGroup(found[i]!) ? [] : found[i]!;
    });
  }
  return rows.map((rows) => toPopResult(queue, rows));
}

/** The rows of each pop. */
async function claimTogether(
  pool: Pool,
  schema: string,
  { tenant, queries }: PopTogetherParts,
): Promise<Row[][]> {
  const { queue, consumerGroup: group = QUEUE_MODE } = queries[0]!;
  const rows = await pool.query(
    `select query.item::integer, popped.*
      from unnest($4::text[], $5::text[], $6::integer[], $7::bigint[], $8::integer[],
          $9::integer[], $10::boolean[]) with ordinality query
          (partition, candidates, batch, bytes, partitions, lease_seconds, auto_ack, item)
        cross join lateral ${schema}.pop($1::uuid, $2::text, query.partition,
          query.candidates::text[], $3::text, query.batch, query.bytes, query.partitions,
          query.lease_seconds, query.auto_ack) popped`,
    [
      tenant,
      queue,
      group,
      arrayLiteral(queries.map(({ partition }) => partition ?? null)),
      arrayLiteral(queries.map(({ candidates = [] }) => arrayLiteral(candidates))),
      arrayLiteral(queries.map(({ batch }) => String(batch))),
      arrayLiteral(queries.map(({ bytesMax }) => String(bytesMax ?? Number.MAX_SAFE_INTEGER))),
      arrayLiteral(queries.map(({ partitions }) => String(partitions ?? 1))),
      arrayLiteral(queries.map(({ leaseSeconds }) => leaseSeconds?.toString() ?? null)),
      arrayLiteral(queries.map(({ autoAck }) => String(autoAck))),
    ],
  );
  const rowsOf = queries.map((): Row[] => []);
  for (const row of rows) rowsOf[row["item"] as number - 1]!.push(row);
  return rowsOf;
}
