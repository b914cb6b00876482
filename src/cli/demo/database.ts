import process from "node:process";
import { databaseFromEnv } from "../../broker/store/database_config.ts";
import { createScratchDatabase } from "../../broker/store/scratch_database.ts";
import { startEmbeddedPostgres } from "../../embedded/embedded_postgres.ts";
import type { Cleanup } from "./cleanup.ts";
import { DemoFailure } from "./failure.ts";

/** A database of the demo's own. */
export interface DemoDatabase {
  /** Where it is. */
  readonly url: string;
  /** What it is, for a person. */
  readonly description: string;
}

/**
 * Makes a database for the demo: on the server that `DATABASE_URL` or `PG_*` name, beside the given
 * one, else on an embedded server.
 *
 * @param cleanup Takes it away again.
 */
export async function openDatabase(cleanup: Cleanup): Promise<DemoDatabase> {
  try {
    const { url } = databaseFromEnv(process.env);
    if (url === undefined) {
      const server = await startEmbeddedPostgres();
      cleanup.add(() => server.stop());
      return { url: server.url, description: "PostgreSQL, embedded, for this demo alone" };
    }
    const database = await createScratchDatabase(url);
    cleanup.add(() => database.drop());
    return { url: database.url, description: "a database of random name beside the given one" };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new DemoFailure(`there is no database for the demo: ${reason}`, { cause: error });
  }
}
