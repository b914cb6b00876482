import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../src/embedded/embedded_postgres.ts";
import {
  createScratchDatabase,
  type ScratchDatabase,
} from "../../src/broker/store/scratch_database.ts";
import { HarnessError } from "./failure.ts";

/**
 * Where the nodes' databases are made: on the server that the user named, else on an embedded one
 * that is started when the first of them is asked for. A database that was there before is never
 * touched.
 */
export class DatabaseServer {
  readonly #url: string | undefined;
  #embedded: Promise<EmbeddedPostgres> | undefined;

  /** Starts nothing yet. */
  constructor(url: string | undefined) {
    this.#url = url;
  }

  /**
   * Makes a database with a random name.
   *
   * @throws {HarnessError} If there is no server, or it does not let it.
   */
  async create(): Promise<ScratchDatabase> {
    try {
      const url = this.#url ?? (await (this.#embedded ??= startEmbeddedPostgres())).url;
      return await createScratchDatabase(url);
    } catch (error) {
      throw new HarnessError(`no database for the nodes: ${(error as Error).message}`);
    }
  }

  /** Stops the embedded server, where there is one. */
  async stop(): Promise<void> {
    const embedded = await this.#embedded?.catch(() => undefined);
    await embedded?.stop();
  }
}

/** A PostgreSQL URL as the environment variables that nodes read. */
export function databaseEnv(url: string): Record<string, string> {
  const { hostname, port, username, password, pathname } = new URL(url);
  return {
    DATABASE_URL: url,
    PG_HOST: hostname,
    PG_PORT: port === "" ? "5432" : port,
    PG_USER: decodeURIComponent(username),
    PG_PASSWORD: decodeURIComponent(password),
    PG_DATABASE: decodeURIComponent(pathname.slice(1)),
  };
}
