import assert from "node:assert/strict";
import postgres from "postgres";
import { isRetriable, isUnavailable, leavesConnectionSound, toStoreError } from "./errors.ts";
import { StoreUnavailableError } from "./store.ts";

function postgresError(code: string): Error {
  return Object.assign(new postgres.PostgresError(`error ${code}`), { code });
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code });
}

Deno.test("what says that PostgreSQL is away is unavailable", () => {
  for (const state of ["08006", "25006", "53300", "55P03", "57014", "57P01", "57P03", "58030"]) {
    assert.ok(isUnavailable(postgresError(state)), state);
  }
  const codes = ["CONNECTION_CLOSED", "CONNECTION_DESTROYED", "CONNECT_TIMEOUT", "ECONNREFUSED"];
  for (const code of [...codes, "ENOTFOUND", "EAI_AGAIN", "EPIPE"]) {
    assert.ok(isUnavailable(systemError(code)), code);
  }
  assert.ok(isUnavailable(new StoreUnavailableError("x")));
});

Deno.test("what is wrong with the statement or the program is not", () => {
  for (const state of ["22021", "23505", "25001", "28P01", "3D000", "42P01", "XX000"]) {
    assert.equal(isUnavailable(postgresError(state)), false, state);
  }
  for (const error of [systemError("ERR_INVALID_ARG_TYPE"), new TypeError("x"), "57014", null]) {
    assert.equal(isUnavailable(error), false);
    assert.equal(toStoreError(error), error);
  }
});

Deno.test("only deadlocks and serialization failures are tried again", () => {
  assert.ok(isRetriable(postgresError("40P01")));
  assert.ok(isRetriable(postgresError("40001")));
  for (const state of ["57014", "40003", "08006"]) assert.ok(!isRetriable(postgresError(state)));
  assert.ok(!isRetriable(systemError("CONNECTION_CLOSED")));
});

Deno.test("an unavailable error keeps its cause and is not wrapped twice", () => {
  const cause = systemError("ECONNREFUSED");
  const error = toStoreError(cause);
  assert.ok(error instanceof StoreUnavailableError);
  assert.equal(error.cause, cause);
  assert.match(error.message, /ECONNREFUSED/);
  assert.equal(toStoreError(error), error);
});

Deno.test("a connection serves on unless the error puts it in doubt", () => {
  for (const state of ["57014", "55P03", "40P01", "23505"]) {
    assert.ok(leavesConnectionSound(postgresError(state)), state);
  }
  for (const error of [postgresError("25006"), postgresError("57P01"), systemError("EPIPE")]) {
    assert.equal(leavesConnectionSound(error), false);
  }
});
