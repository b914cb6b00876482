import assert from "node:assert/strict";
import postgres from "postgres";
import { testDatabase } from "./test_database.ts";

async function ask(url: string): Promise<unknown> {
  const sql = postgres(url, { max: 1, max_lifetime: null, fetch_types: false });
  try {
    const [row] = await sql`select current_database() as name`;
    return row!["name"];
  } finally {
    await sql.end();
  }
}

Deno.test("each test database is one of its own, and dropping one leaves the others", async () => {
  const [first, second] = await Promise.all([testDatabase(), testDatabase()]);
  try {
    assert.notEqual(await ask(first.url), await ask(second.url));
    await first.drop();
    await assert.rejects(ask(first.url), { code: "3D000" });
    assert.match(await ask(second.url) as string, /^queen_mesh_scratch_/);
  } finally {
    await second.drop();
  }
});

Deno.test("a test database is dropped although somebody is connected to it", async () => {
  const database = await testDatabase();
  const sql = postgres(database.url, { max: 1, max_lifetime: null, fetch_types: false });
  try {
    await sql`select 1`;
    await database.drop();
    await assert.rejects(sql`select 1`);
  } finally {
    await sql.end();
  }
});
