/**
 * The maintenance flags, and what a replica keeps of a queue's configuration.
 *
 * @module
 */

import type { Row } from "./connection.ts";
import type { Pool } from "./pool.ts";
import type {
  EncryptedQueue,
  FlagName,
  FlagValue,
  FlagValues,
  QueueConfig,
  TenantId,
} from "./store.ts";

/** Reads all flags, as of one moment. */
export async function readFlags(pool: Pool, schema: string): Promise<FlagValues> {
  const rows = await pool.query(`select name, enabled, version from ${schema}.flag`, []);
  const valueOf = (name: FlagName) => {
    const row = rows.find((row) => row["name"] === name);
    if (row === undefined) throw new Error(`The table flag has no row "${name}": put it back`);
    return toValue(row);
  };
  return { maintenance: valueOf("maintenance"), pop_maintenance: valueOf("pop_maintenance") };
}

/** Writes a flag and raises its version. */
export async function writeFlag(
  pool: Pool,
  schema: string,
  { name, enabled }: { readonly name: FlagName; readonly enabled: boolean },
): Promise<FlagValue> {
  const [row] = await pool.query(
    `insert into ${schema}.flag as flag (name, enabled, version) values ($1::text, $2::boolean, 1)
      on conflict (name) do update set enabled = excluded.enabled, version = flag.version + 1
      returning enabled, version`,
    [name, enabled],
  );
  return toValue(row!);
}

/** Resolves to undefined where there is no such queue. */
export async function queueConfig(
  pool: Pool,
  schema: string,
  { tenant, queue }: { readonly tenant: TenantId; readonly queue: string },
): Promise<QueueConfig | undefined> {
  const [row] = await pool.query(
    `select lease_time, encryption_enabled from ${schema}.queue
      where tenant = $1::uuid and name = $2::text`,
    [tenant, queue],
  );
  return row && {
    leaseSeconds: row["lease_time"] as number,
    encryptionEnabled: row["encryption_enabled"] as boolean,
  };
}

/** The encrypted queues of all tenants, at most `countMax`. */
export async function encryptedQueues(
  pool: Pool,
  schema: string,
  countMax: number,
): Promise<readonly EncryptedQueue[]> {
  const rows = await pool.query(
    // A deleted queue has no tenant.
    `select tenant, name from ${schema}.queue
      where encryption_enabled and tenant is not null limit $1::bigint`,
    [String(countMax)],
  );
  return rows.map((row) => ({ tenant: row["tenant"] as string, queue: row["name"] as string }));
}

function toValue(row: Row): FlagValue {
  return { enabled: row["enabled"] as boolean, version: Number(row["version"]) };
}
