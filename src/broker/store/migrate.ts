/**
 * Making the schema, and bringing it up to date.
 *
 * @module
 */

import type { Send } from "./connection.ts";
import type { Pool } from "./pool.ts";
import { type Migration, MIGRATIONS } from "./schema.ts";
import { quoteSchemaName } from "./schema_name.ts";

/** The table by which a schema is known to be ours. It holds a row for each step taken. */
const MARKER = "queen_mesh_migration";

/**
 * Makes the schema, or takes the steps that it lacks, all of them or none. Any number of replicas
 * may do so at once: an advisory lock lets one through at a time.
 *
 * @throws {Error} If the schema was not made by this program, or is newer than it knows.
 */
export async function migrate(
  pool: Pool,
  schema: string,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const quoted = quoteSchemaName(schema);
  await pool.transaction(async (send) => {
    await send(
      "select pg_advisory_xact_lock(hashtextextended('queen_mesh ' || $1::text, 0))",
      [schema],
    );
    const version = await currentVersion(send, schema) ?? await makeSchema(send, schema);
    if (version > migrations.length) {
      throw new Error(
        `The schema "${schema}" has version ${version}, and this program knows version ` +
          `${migrations.length} at most: run a newer one, or set PG_SCHEMA to another name`,
      );
    }
    for (const [index, migration] of migrations.entries()) {
      if (index < version) continue;
      for (const statement of migration(quoted)) await send(statement);
      await send(`insert into ${quoted}.${MARKER} (version) values (${index + 1})`);
    }
  });
}

/** Resolves to undefined where there is no such schema. */
async function currentVersion(send: Send, schema: string): Promise<number | undefined> {
  const [found] = await send(
    `select to_regclass($1::text) is not null as is_ours
      from pg_catalog.pg_namespace where nspname = $2::text`,
    [`${quoteSchemaName(schema)}.${MARKER}`, schema],
  );
  if (!found) return undefined;
  if (!found["is_ours"]) {
    throw new Error(
      `The schema "${schema}" exists, and this program did not make it: set PG_SCHEMA to another name`,
    );
  }
  const [row] = await send(
    `select coalesce(max(version), 0) as version from ${quoteSchemaName(schema)}.${MARKER}`,
  );
  return row!["version"] as number;
}

async function makeSchema(send: Send, schema: string): Promise<number> {
  const quoted = quoteSchemaName(schema);
  await send(`create schema ${quoted}`);
  await send(`create table ${quoted}.${MARKER} (
    version integer primary key,
    applied_at timestamptz not null default now()
  )`);
  return 0;
}
