/**
 * A database of one's own beside a given one: for tests and demonstrations, which never work in a
 * database that they were given.
 *
 * @module
 */

import { randomBytes } from "node:crypto";
import postgres from "postgres";

/** A database with a random name. */
export interface ScratchDatabase {
  /** Where it is. */
  readonly url: string;
  /** Removes it, cutting off whoever is still connected. */
  drop(): Promise<void>;
}

/** Creates a database on the server that `url` names. Its account must be allowed to. */
export async function createScratchDatabase(url: string): Promise<ScratchDatabase> {
  const name = `queen_mesh_scratch_${randomBytes(8).toString("hex")}`;
  await run(url, `create database ${name} encoding 'UTF8' template template0`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return {
    url: own.href,
    drop: () => run(url, `drop database if exists ${name} with (force)`),
  };
}

async function run(url: string, statement: string): Promise<void> {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}
