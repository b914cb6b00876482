import assert from "node:assert/strict";
import { useTestStores } from "../../testing/test_store.ts";
import { systemClock } from "../../runtime/system.ts";
import { migrate } from "./migrate.ts";
import { Pool } from "./pool.ts";
import { MIGRATIONS } from "./schema.ts";
import { StoreUnavailableError } from "./store.ts";

const open = useTestStores();

Deno.test("several replicas can make the schema at once", async () => {
  await using fixture = await open();
  const { sql, schema, another } = fixture;
  await sql.unsafe(`drop schema ${schema} cascade`);
  await Promise.all([another().migrate(), another().migrate(), another().migrate()]);
  const rows = await sql.unsafe(`select version from ${schema}.queen_mesh_migration`);
  assert.deepEqual(rows.map((row) => row["version"]), MIGRATIONS.map((_, index) => index + 1));
});

Deno.test("a schema that is up to date is left as it is", async () => {
  await using fixture = await open();
  const { sql, schema, another } = fixture;
  const tables = () =>
    sql.unsafe(`select oid, xmin from pg_class where relnamespace = '${schema}'::regnamespace`);
  const before = await tables();
  await another().migrate();
  assert.deepEqual([...await tables()], [...before]);
});

Deno.test("a schema that this program did not make is refused in one line", async () => {
  await using fixture = await open();
  const { sql, schema, another } = fixture;
  await sql.unsafe(`drop schema ${schema} cascade; create schema ${schema}`);
  await assert.rejects(another().migrate(), (error: Error) => {
    assert.match(
      error.message,
      /^The schema "test_\w+" exists, and this program did not make it: /,
    );
    assert.doesNotMatch(error.message, /\n/);
    assert.ok(!(error instanceof StoreUnavailableError));
    return true;
  });
  const [count] = await sql.unsafe(
    `select count(*)::int as n from pg_class where relnamespace = '${schema}'::regnamespace`,
  );
  assert.equal(count!["n"], 0);
});

Deno.test("a schema newer than this program is refused in one line", async () => {
  await using fixture = await open();
  const { sql, schema, another } = fixture;
  const next = MIGRATIONS.length + 1;
  await sql.unsafe(`insert into ${schema}.queen_mesh_migration (version) values (${next})`);
  await assert.rejects(
    another().migrate(),
    new RegExp(`^Error: The schema "${schema}" has version ${next}, and this program knows .+$`),
  );
});

Deno.test("the steps that a schema lacks are taken, all of them or none", async () => {
  await using fixture = await open();
  const { sql, schema, url } = fixture;
  const pool = new Pool({ url, size: 1, timeoutMs: 20_000, clock: systemClock });
  try {
    const good = (s: string) => [`create table ${s}.later (id integer)`];
    const bad = () => ["select 1 / 0"];
    await assert.rejects(migrate(pool, schema, [...MIGRATIONS, good, bad]), { code: "22012" });
    const [later] = await sql.unsafe(`select to_regclass('${schema}.later') as name`);
    assert.equal(later!["name"], null);
    await migrate(pool, schema, [...MIGRATIONS, good]);
    await sql.unsafe(`select id from ${schema}.later`);
  } finally {
    await pool.close();
  }
});

Deno.test("before the schema was checked nothing is available but the server's health", async () => {
  await using fixture = await open();
  const store = fixture.another();
  await assert.rejects(store.giveBack("t", "x"), StoreUnavailableError);
  assert.match(await store.health(), /^\d+/);
});
