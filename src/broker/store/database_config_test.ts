import assert from "node:assert/strict";
import { databaseFromEnv } from "./database_config.ts";

Deno.test("an empty environment names no server", () => {
  assert.deepEqual(databaseFromEnv({}), {
    url: undefined,
    schema: "queen_mesh",
    poolSize: 10,
    timeoutMs: 5000,
  });
  const { url } = databaseFromEnv({ PG_HOST: "", PG_SCHEMA: "", PG_USE_SSL: "true" });
  assert.equal(url, undefined);
});

Deno.test("DATABASE_URL goes before the PG variables", () => {
  const env = { DATABASE_URL: "postgresql://u:p@h/d?sslmode=require", PG_HOST: "other" };
  assert.equal(databaseFromEnv(env).url, env.DATABASE_URL);
  const several = "postgres://u:p@one:5432,two:5433/d";
  assert.equal(databaseFromEnv({ DATABASE_URL: several }).url, several);
});

Deno.test("the PG variables become a URL", () => {
  const urlOf = (env: Record<string, string>) => databaseFromEnv(env).url;
  assert.equal(urlOf({ PG_HOST: "db" }), "postgres://postgres:@db:5432/postgres");
  assert.equal(
    urlOf({ PG_USER: "a@b", PG_PASSWORD: "p/w?#%", PG_DATABASE: "d d", PG_PORT: "6000" }),
    "postgres://a%40b:p%2Fw%3F%23%25@localhost:6000/d%20d",
  );
  assert.equal(urlOf({ PG_HOST: "::1" }), "postgres://postgres:@[::1]:5432/postgres");
  assert.equal(
    urlOf({ PG_HOST: "db", PG_USE_SSL: "true" }),
    "postgres://postgres:@db:5432/postgres?sslmode=require",
  );
});

Deno.test("the pool, the schema and the timeout are read", () => {
  const env = { DB_POOL_SIZE: "3", PG_SCHEMA: "mine", QUEEN_PG_TIMEOUT_MS: "250" };
  const { poolSize, schema, timeoutMs } = databaseFromEnv(env);
  assert.deepEqual([poolSize, schema, timeoutMs], [3, "mine", 250]);
});

Deno.test("a bad value is an error of one line that names the variable", () => {
  const bad: Record<string, string> = {
    DATABASE_URL: "mysql://secret@host/db",
    PG_PORT: "0",
    PG_USE_SSL: "maybe",
    PG_SCHEMA: "No",
    DB_POOL_SIZE: "1.5",
    QUEEN_PG_TIMEOUT_MS: "9",
  };
  for (const [name, value] of Object.entries(bad)) {
    assert.throws(() => databaseFromEnv({ PG_HOST: "db", [name]: value }), (error: Error) => {
      assert.ok(error instanceof SyntaxError || error instanceof RangeError);
      assert.match(error.message, new RegExp(`^${name} must .+$`));
      assert.doesNotMatch(error.message, /secret|\n/);
      return true;
    });
  }
  assert.throws(() => databaseFromEnv({ DATABASE_URL: "postgres://[" }), SyntaxError);
  assert.throws(() => databaseFromEnv({ PG_HOST: "a b" }), /PG_HOST must be a host/);
});
