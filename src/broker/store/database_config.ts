/**
 * Which PostgreSQL to use and how, as the environment says.
 *
 * @module
 */

import { parseSchemaName } from "./schema_name.ts";

/** The environment: a name that is missing or empty counts as not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Which PostgreSQL to use and how. */
export interface DatabaseConfig {
  /** `postgres://user:password@host:port/database`; undefined where the environment names none. */
  readonly url: string | undefined;
  /** The schema that holds everything. */
  readonly schema: string;
  /** At most this many connections, 1 to 1000. */
  readonly poolSize: number;
  /** Every call ends within this time, in milliseconds: 10 to 600000. */
  readonly timeoutMs: number;
}

/** Any of these names a server. */
const SERVER_VARIABLES = ["PG_HOST", "PG_PORT", "PG_USER", "PG_PASSWORD", "PG_DATABASE"];

/**
 * Reads `DATABASE_URL`, or else `PG_HOST`, `PG_PORT`, `PG_USER`, `PG_PASSWORD`, `PG_DATABASE` and
 * `PG_USE_SSL`; and `PG_SCHEMA` (`queen_mesh`), `DB_POOL_SIZE` (10) and `QUEEN_PG_TIMEOUT_MS` (5000).
 *
 * @throws {SyntaxError} If a value is malformed.
 * @throws {RangeError} If a number is out of its bounds. Neither message holds a password.
 */
export function databaseFromEnv(env: Environment): DatabaseConfig {
  return {
    url: urlFromEnv(env),
    schema: parseSchemaName(env["PG_SCHEMA"] || "queen_mesh"),
    poolSize: integer(env, "DB_POOL_SIZE", { initial: 10, min: 1, max: 1000 }),
    timeoutMs: integer(env, "QUEEN_PG_TIMEOUT_MS", { initial: 5000, min: 10, max: 600_000 }),
  };
}

function urlFromEnv(env: Environment): string | undefined {
  const given = env["DATABASE_URL"];
  if (given) {
    // Several hosts, as PostgreSQL's own clients take them, are more than a URL.
    const isOneHost = !given.includes(",");
    if (!/^postgres(ql)?:\/\//.test(given) || (isOneHost && !URL.canParse(given))) {
      throw new SyntaxError(
        "DATABASE_URL must look like postgres://user:password@host:5432/database",
      );
    }
    return given;
  }
  const useSsl = boolean(env, "PG_USE_SSL");
  if (!SERVER_VARIABLES.some((name) => env[name])) return undefined;
  const host = env["PG_HOST"] || "localhost";
  const port = integer(env, "PG_PORT", { initial: 5432, min: 1, max: 65_535 });
  const user = encodeURIComponent(env["PG_USER"] || "postgres");
  const password = encodeURIComponent(env["PG_PASSWORD"] ?? "");
  const database = encodeURIComponent(env["PG_DATABASE"] || "postgres");
  const address = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  const url = `postgres://${user}:${password}@${address}:${port}/${database}`;
  if (!URL.canParse(url)) throw new SyntaxError(`PG_HOST must be a host, got "${host}"`);
  return useSsl ? `${url}?sslmode=require` : url;
}

interface Bounds {
  readonly initial: number;
  readonly min: number;
  readonly max: number;
}

function integer(env: Environment, name: string, { initial, min, max }: Bounds): number {
  const text = env[name];
  if (!text) return initial;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  throw new RangeError(`${name} must be a whole number from ${min} to ${max}, got "${text}"`);
}

function boolean(env: Environment, name: string): boolean {
  const text = env[name];
  if (!text || text === "false") return false;
  if (text === "true") return true;
  throw new SyntaxError(`${name} must be true or false, got "${text}"`);
}
