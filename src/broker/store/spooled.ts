/**
 * Storing what waited in a disk spool, each message exactly once.
 *
 * @module
 */

import { arrayLiteral } from "./array_literal.ts";
import { isDataError } from "./errors.ts";
import { FUNCTION_SETTINGS } from "./function_settings.ts";
import type { Pool } from "./pool.ts";
import {
  type SpooledBatch,
  type SpooledItem,
  type SpooledResult,
  StoreDataError,
  type TenantPartition,
} from "./store.ts";

/** By this code the function says that the encryption of a queue is not what the batch assumed. */
const MISJUDGED_STATE = "QM001";

/**
 * A batch may take as long as any statement for each so many characters of its payloads. Nobody waits
 * for it, and one that could never be stored in time would hold up all that was spooled after it.
 */
const CHARACTERS_PER_TIMEOUT = 4 * 1024 * 1024;

/** Stores a batch and its position in one transaction, or does nothing. */
export async function storeSpooled(
  pool: Pick<Pool, "query">,
  schema: string,
  { spoolId, after, position, items }: SpooledBatch,
): Promise<SpooledResult> {
  let rows;
  try {
    rows = await pool.query(
      `select * from ${schema}.store_spooled($1::text, $2::bigint, $3::bigint, $4::uuid[],
        $5::text[], $6::text[], $7::uuid[], $8::text[], $9::text[], $10::boolean[],
        $11::timestamptz[], $12::integer[])`,
      [
        spoolId,
        String(after),
        String(position),
        arrayLiteral(items.map((item) => item.tenant)),
        arrayLiteral(items.map((item) => item.queue)),
        arrayLiteral(items.map((item) => item.partition)),
        arrayLiteral(items.map((item) => item.messageId)),
        arrayLiteral(items.map((item) => item.transactionId)),
        arrayLiteral(items.map((item) => item.payload)),
        arrayLiteral(items.map((item) => String(item.encrypted ?? false))),
        arrayLiteral(items.map((item) => new Date(item.acceptedAt).toISOString())),
        arrayLiteral(slicesOf(items).map(String)),
      ],
      { timeouts: timeoutsOf(items) },
    );
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === MISJUDGED_STATE) {
      return { position: after, isMisjudged: true, touched: [] };
    }
    if (!isDataError(error)) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new StoreDataError(`PostgreSQL refuses the messages: ${reason}`, { cause: error });
  }
  const touched = new Map<string, TenantPartition>();
  for (const row of rows) {
    if (row["item"] === null) continue;
    const delayMs = row["available_in_ms"] as number | null;
    if (delayMs === null) continue;
    const { tenant, queue, partition } = items[Number(row["item"]) - 1]!;
    const delay = delayMs === 0 ? {} : { delayMs };
    touched.set(JSON.stringify([tenant, queue, partition]), { tenant, queue, partition, ...delay });
  }
  const held = Number(rows.at(-1)!["held"]);
  return { position: held, isMisjudged: false, touched: [...touched.values()] };
}

/** The position that is stored for a spool; 0 where none is. */
export async function spoolPosition(pool: Pool, schema: string, spoolId: string): Promise<number> {
  const [row] = await pool.query(
    `select position from ${schema}.spool_position where spool_id = $1::text`,
    [spoolId],
  );
  return Number(row?.["position"] ?? 0);
}

/** How many times the usual timeout a batch may take. */
function timeoutsOf(items: readonly SpooledItem[]): number {
  const characters = items.reduce((sum, { payload }) => sum + payload.length, 0);
  return Math.max(1, Math.ceil(characters / CHARACTERS_PER_TIMEOUT));
}

/**
 * The number of a slice for each item. Slices are stored one after the other: within one no
 * transaction occurs twice in a partition, so that each is judged against what is stored, by the time
 * at which it was accepted.
 */
function slicesOf(items: readonly SpooledItem[]): number[] {
  let seen = new Set<string>();
  let slice = 0;
  return items.map(({ tenant, queue, partition, transactionId }) => {
    const key = JSON.stringify([tenant, queue, partition, transactionId]);
    if (seen.has(key)) {
      slice++;
      seen = new Set();
    }
    seen.add(key);
    return slice;
  });
}

/** What the schema needs for {@linkcode storeSpooled}. */
export const spooledFunctions = (s: string): readonly string[] => [
  `
-- Returns each item that was stored, and at last a row that says which position the spool has now.
create function ${s}.store_spooled(
  p_spool_id text, p_after bigint, p_position bigint,
  p_tenants uuid[], p_queues text[], p_partitions text[], p_ids uuid[], p_transactions text[],
  p_payloads text[], p_encrypted boolean[], p_accepted timestamptz[], p_slices integer[]
)
returns table (held bigint, item bigint, available_in_ms integer)
language plpgsql ${FUNCTION_SETTINGS} as $$
#variable_conflict use_column
declare
  v_held bigint;
  v_slice integer;
  v_tenant uuid;
  v_items bigint[];
  v_queues text[];
  v_partitions text[];
  v_ids uuid[];
  v_transactions text[];
  v_payloads text[];
  v_encrypted boolean[];
  v_accepted timestamptz[];
  v_pushed record;
begin
  insert into ${s}.spool_position (spool_id, position) values (p_spool_id, 0) on conflict do nothing;
  select position into v_held from ${s}.spool_position where spool_id = p_spool_id for update;
  if v_held <> p_after then
    return query select v_held, null::bigint, null::integer;
    return;
  end if;
  for v_tenant, v_queues, v_partitions in
    select tenant, array_agg(queue), array_agg(partition)
      from unnest(p_tenants, p_queues, p_partitions) given (tenant, queue, partition)
      group by tenant order by tenant
  loop
    perform ${s}.lock_partitions(v_tenant, v_queues, v_partitions);
  end loop;
  for v_slice, v_tenant, v_items, v_queues, v_partitions, v_ids, v_transactions, v_payloads,
    v_encrypted, v_accepted
  in
    select slice, tenant, array_agg(item order by item), array_agg(queue order by item),
      array_agg(partition order by item), array_agg(id order by item),
      array_agg(transaction order by item), array_agg(payload order by item),
      array_agg(encrypted order by item),
      array_agg(least(accepted_at, clock_timestamp()) order by item)
    from unnest(p_tenants, p_queues, p_partitions, p_ids, p_transactions, p_payloads, p_encrypted,
      p_accepted, p_slices)
      with ordinality given (tenant, queue, partition, id, transaction, payload, encrypted,
        accepted_at, slice, item)
    group by slice, tenant order by slice, tenant
  loop
    for v_pushed in
      select item, status, available_in_ms from ${s}.push(v_tenant, v_queues, v_partitions, v_ids, v_transactions,
        v_payloads, v_encrypted, v_accepted)
    loop
      if v_pushed.status = 'failed' then
        raise exception using errcode = '${MISJUDGED_STATE}',
          message = 'the encryption of a queue was changed';
      elsif v_pushed.status = 'queued' then
        return query select null::bigint, v_items[v_pushed.item], v_pushed.available_in_ms;
      end if;
    end loop;
  end loop;
  update ${s}.spool_position set position = p_position where spool_id = p_spool_id;
  return query select p_position, null::bigint, null::integer;
end $$`,
];
