/**
 * Stores for the tests of a file, on one database.
 *
 * @module
 */

import { randomBytes, randomUUID } from "node:crypto";
import postgres from "postgres";
import { PostgresStore } from "../broker/store/postgres_store.ts";
import type { ScratchDatabase } from "../broker/store/scratch_database.ts";
import type { PushItem } from "../broker/store/store.ts";
import { systemClock } from "../runtime/system.ts";
import { testDatabase } from "./test_database.ts";

/** The tenant of tests that need one. */
export const TENANT = "00000000-0000-4000-8000-000000000001";

/** A store in a schema of its own. */
export interface TestStore extends AsyncDisposable {
  /** The store. */
  readonly store: PostgresStore;
  /** Connections beside those of the store, to look behind it and to hold locks. */
  readonly sql: postgres.Sql;
  /** The name of the schema. */
  readonly schema: string;
  /** Where the database is. */
  readonly url: string;
  /** Opens another store, as another replica would. */
  another(options?: TestStoreOptions): PostgresStore;
}

/** How a store of a test differs. */
export interface TestStoreOptions {
  /** At most this many connections; 10 by default. */
  readonly poolSize?: number;
  /** Every call ends within this time; 20 s by default, since a test machine may be slow. */
  readonly timeoutMs?: number;
}

/** A message for a push. */
export function testItem(transactionId: string, changes: Partial<PushItem> = {}): PushItem {
  return {
    queue: "orders",
    partition: "Default",
    messageId: randomUUID(),
    transactionId,
    payload: JSON.stringify(transactionId),
    ...changes,
  };
}

/**
 * Gives the tests of a file a database, made before the first and dropped after the last, and
 * returns what opens a store in a new schema of it.
 */
export function useTestStores(): (options?: TestStoreOptions) => Promise<TestStore> {
  let database: ScratchDatabase | undefined;
  Deno.test.beforeAll(async () => {
    database = await testDatabase();
  });
  Deno.test.afterAll(async () => {
    await database?.drop();
  });
  return async (options = {}) => {
    if (!database) throw new Error("A store was opened outside of a test");
    const { url } = database;
    const schema = `test_${randomBytes(6).toString("hex")}`;
    const stores: PostgresStore[] = [];
    const another = ({ poolSize = 10, timeoutMs = 20_000 }: TestStoreOptions = {}) => {
      const store = new PostgresStore({ url, schema, poolSize, timeoutMs, clock: systemClock });
      stores.push(store);
      return store;
    };
    const store = another(options);
    await store.migrate();
    // Without fetch_types its reserve() never resolves on a connection that is not open yet.
    const sql = postgres(url, { max: 5, fetch_types: true, onnotice: () => {} });
    return {
      store,
      sql,
      schema,
      url,
      another,
      async [Symbol.asyncDispose]() {
        await Promise.all(stores.map((each) => each.close()));
        await sql.end();
      },
    };
  };
}
