/**
 * What PostgreSQL's errors mean to a caller.
 *
 * @module
 */

import { StoreUnavailableError } from "./store.ts";

/**
 * SQLSTATEs, or their first characters, that say: not now. The statement was rolled back, or the
 * connection broke.
 */
const UNAVAILABLE_STATES = [
  "08", // connection exceptions
  "25006", // read-only: a standby, or a primary that became one
  "40001", // serialization failure, after all the retries
  "40P01", // deadlock, after all the retries
  "53", // out of memory, disk or connections
  "55P03", // lock timeout
  "57", // cancelled by a timeout, shutting down, starting up
  "58", // the server's disk or operating system failed
];

/** SQLSTATEs of statements that were rolled back whole and may go through if repeated. */
const RETRIABLE_STATES = ["40001", "40P01"];

/**
 * Whether the error proves that the statement was rolled back, and that another attempt may well
 * succeed. Nothing else may be repeated blindly: it may have been committed.
 */
export function isRetriable(error: unknown): boolean {
  return RETRIABLE_STATES.includes(sqlState(error) ?? "");
}

/** Whether the error says that PostgreSQL is away, or leaves open whether it did as asked. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof StoreUnavailableError) return true;
  const state = sqlState(error);
  if (state !== undefined) return UNAVAILABLE_STATES.some((prefix) => state.startsWith(prefix));
  // The client's own codes and those of the operating system (ECONNREFUSED, ENOTFOUND), but not
  // those of misuse (ERR_INVALID_ARG_TYPE).
  return /^(CONNECTION_[A-Z]+|CONNECT_TIMEOUT|E(?!RR_)[A-Z0-9_]+)$/.test(codeOf(error) ?? "");
}

/** Whether PostgreSQL refused the values: SQLSTATE class 22 (data) or 23 (constraints). */
export function isDataError(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error) ?? "");
}

/** States of a statement that was stopped, on a connection that is as good as before. */
const STOPPED_STATES = [...RETRIABLE_STATES, "55P03", "57014"];

/**
 * Whether the connection that the error came from may serve on. Where it may not, the next one may
 * well lead to another server.
 */
export function leavesConnectionSound(error: unknown): boolean {
  return !isUnavailable(error) || STOPPED_STATES.includes(sqlState(error) ?? "");
}

/** The error for the caller: a {@linkcode StoreUnavailableError} where it is one, else itself. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof StoreUnavailableError || !isUnavailable(error)) return error;
  const reason = error instanceof Error ? error.message || codeOf(error) : String(error);
  return new StoreUnavailableError(`PostgreSQL is unavailable: ${reason}`, { cause: error });
}

/** The five characters of PostgreSQL's own error code. */
function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== "PostgresError") return undefined;
  return codeOf(error);
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
