/**
 * One connection to PostgreSQL.
 *
 * @module
 */

import postgres from "postgres";
import { StoreUnavailableError } from "./store.ts";

/** Sends a statement within a transaction. Without parameters there may be several in one text. */
export type Send = (text: string, parameters?: readonly Parameter[]) => Promise<readonly Row[]>;

/**
 * When PostgreSQL stops a statement that may take `timeoutMs`, in milliseconds. It gives up before the
 * caller does, so that the caller hears how it ended.
 */
export function statementTimeoutMs(timeoutMs: number): number {
  return Math.ceil(timeoutMs * 0.8);
}

/** How to connect. */
export interface ConnectionOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** How long a statement may take, in milliseconds; PostgreSQL itself stops it a little earlier. */
  readonly timeoutMs: number;
}

/**
 * A client of one connection, which is made at its first statement and not a second time.
 *
 * The client could reconnect by itself, and could share a pool and its connections among many
 * statements. It does neither, so that a statement never waits behind another one that hangs, a
 * hung connection can be given up alone, and nothing half-written by a broken connection gets into
 * the next.
 */
export class Connection {
  readonly #sql: postgres.Sql;
  #isOpen = true;

  /** Sets the client up. Nothing is sent yet. */
  constructor({ url, timeoutMs }: ConnectionOptions) {
    const statementMs = statementTimeoutMs(timeoutMs);
    this.#sql = postgres(url, {
      ...address(url),
      max: 1,
      connect_timeout: statementMs / 1000,
      idle_timeout: 0,
      max_lifetime: null,
      backoff: () => 0,
      fetch_types: false,
      onnotice: () => {},
      onclose: () => {
        this.#isOpen = false;
      },
      connection: {
        application_name: "queen-mesh",
        statement_timeout: statementMs,
        lock_timeout: Math.ceil(timeoutMs * 0.7),
        // Every function relies on seeing, after it waited for a lock, what was committed meanwhile.
        default_transaction_isolation: "read committed",
      },
    });
  }

  /** Whether a statement can be sent. False for good once the connection has ended. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Sends one statement, prepared once for each connection. */
  async query(text: string, parameters: readonly Parameter[]): Promise<readonly Row[]> {
    // The client would connect anew, in the middle of a transaction too.
    if (!this.#isOpen) throw new StoreUnavailableError("The connection to PostgreSQL was lost");
    // The promise settles with ReadyForQuery, which follows the commit.
    return await this.#sql.unsafe<Row[]>(text, [...parameters], { prepare: true });
  }

  /**
   * Runs statements in one transaction, rolled back if `work` rejects.
   *
   * The client's own `begin` and `reserve` write to the connection even after it broke, from a
   * timer of their own, and what that throws nobody can catch. In Deno 2.9 it also breaks
   * `setImmediate` for good, and with it the client: no handler makes up for that.
   */
  async transaction<T>(work: (send: Send) => Promise<T>): Promise<T> {
    await this.query("begin", []);
    try {
      const result = await work((text, parameters = []) => this.query(text, parameters));
      await this.query("commit", []);
      return result;
    } catch (error) {
      // A connection that broke has rolled back.
      if (this.#isOpen) await this.query("rollback", []);
      throw error;
    }
  }

  /** Ends the connection. What it was busy with gets `graceMs` to finish, then it is cut off. */
  async end(graceMs: number): Promise<void> {
    this.#isOpen = false;
    await this.#sql.end({ timeout: graceMs / 1000 });
  }
}

/**
 * A value of a statement: text, which PostgreSQL casts, a boolean (of which the client would take
 * the text for false), or null.
 */
export type Parameter = string | boolean | null;

/** One row: text, numbers and booleans by column. */
export type Row = Readonly<Record<string, unknown>>;

/**
 * The client takes an IPv6 address only without brackets and as the one member of an array, of
 * which its types know nothing.
 */
function address(url: string): { host?: string; port?: number } {
  if (!URL.canParse(url)) return {};
  const { hostname, port } = new URL(url);
  if (!hostname.startsWith("[")) return {};
  const lists: unknown = { host: [hostname.slice(1, -1)], port: [Number(port || 5432)] };
  return lists as { host: string; port: number };
}
