/**
 * A database for a test.
 *
 * @module
 */

import process from "node:process";
import { databaseFromEnv } from "../broker/store/database_config.ts";
import { createScratchDatabase, type ScratchDatabase } from "../broker/store/scratch_database.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../embedded/embedded_postgres.ts";

/** The embedded server of this process and how many databases of it are in use. */
let server: Promise<EmbeddedPostgres> | undefined;
let users = 0;

/**
 * Creates a database with a random name beside the one that `DATABASE_URL` or `PG_*` name. Where
 * they name none, it is created on an embedded server, which starts with the first such database
 * and stops as the last is dropped.
 */
export async function testDatabase(): Promise<ScratchDatabase> {
  const { url } = databaseFromEnv(process.env);
  if (url !== undefined) return await createScratchDatabase(url);
  users++;
  server ??= startEmbeddedPostgres();
  const started = server;
  try {
    const database = await createScratchDatabase((await started).url);
    return {
      url: database.url,
      async drop() {
        await database.drop();
        await leave();
      },
    };
  } catch (error) {
    await leave();
    throw error;
  }
}

async function leave(): Promise<void> {
  users--;
  if (users > 0) return;
  const last = server;
  server = undefined;
  await (await last)?.stop();
}
