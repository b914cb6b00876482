/**
 * Looking at dead letters.
 *
 * @module
 */

import type { Row } from "./connection.ts";
import type { Pool } from "./pool.ts";
import type { DeadLetter, DeadLetterPage, DeadLetterQuery, TenantId } from "./store.ts";

/** Finds dead letters, the latest first; resolves to undefined where there is no such queue. */
export async function deadLetters(
  pool: Pool,
  schema: string,
  { tenant, query }: { readonly tenant: TenantId; readonly query: DeadLetterQuery },
): Promise<DeadLetterPage | undefined> {
  const rows = await pool.query(statement(schema), [
    tenant,
    query.queue,
    query.consumerGroup ?? null,
    query.partition ?? null,
    query.from ?? null,
    query.to ?? null,
    String(query.limit),
    String(query.offset),
    String(query.bytesMax ?? Number.MAX_SAFE_INTEGER),
  ]);
  const [head] = rows;
  if (head === undefined) return undefined;
  return {
    messages: rows.filter((row) => row["id"] !== null).map(toDeadLetter),
    total: Number(head["total"]),
  };
}

/** Payloads are fetched for those alone that are returned. */
const statement = (s: string): string => `
  with asked as (
    select id as queue_id from ${s}.queue where tenant = $1::uuid and name = $2::text
  ), matching as materialized (
    select letter.partition_id, letter.consumer_group, letter.number, letter.failed_at,
        octet_length(letter.payload) as bytes
      from asked join ${s}.dead_letter letter using (queue_id)
      join ${s}.partition on partition.id = letter.partition_id
      where ($3::text is null or letter.consumer_group = $3::text)
        and ($4::text is null or partition.name = $4::text)
        and ($5::text is null or letter.failed_at >= $5::text::timestamptz)
        and ($6::text is null or letter.failed_at <= $6::text::timestamptz)
  ), page as (
    select matching.*,
        row_number() over (order by failed_at desc, partition_id, consumer_group, number) as place
      from matching
      order by failed_at desc, partition_id, consumer_group, number
      limit $7::bigint offset $8::bigint
  ), fitting as (
    select * from (
      select page.*, sum(bytes) over (order by place) as bytes_so_far, min(place) over () as first
        from page
    ) page where bytes_so_far <= $9::bigint or place = first
  )
  select (select count(*) from matching)::text as total, letter.message_id as id,
      letter.transaction_id, letter.partition_id, partition.name as partition,
      letter.consumer_group, letter.payload, letter.encrypted, letter.error, letter.retry_count,
      ${timeText("letter.created_at")} as created_at, ${timeText("letter.failed_at")} as failed_at
    from asked left join (
      fitting join ${s}.dead_letter letter using (partition_id, consumer_group, number)
      join ${s}.partition on partition.id = letter.partition_id
    ) on true
    order by place`;

function timeText(column: string): string {
  return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}

function toDeadLetter(row: Row): DeadLetter {
  return {
    id: row["id"] as string,
    transactionId: row["transaction_id"] as string,
    partitionId: row["partition_id"] as string,
    partition: row["partition"] as string,
    consumerGroup: row["consumer_group"] as string,
    payload: row["payload"] as string,
    encrypted: row["encrypted"] as boolean,
    error: row["error"] as string | null ?? undefined,
    retryCount: row["retry_count"] as number,
    createdAt: row["created_at"] as string,
    failedAt: row["failed_at"] as string,
  };
}
