import assert from "node:assert/strict";
import { parseSchemaName } from "./schema_name.ts";

Deno.test("a plain lowercase name is a schema name", () => {
  for (const name of ["queen_mesh", "_x", "a1", "select", "x".repeat(63)]) {
    assert.equal(parseSchemaName(name), name);
  }
});

Deno.test("what is no plain name is no schema name", () => {
  const names = ["", "1a", "Queen", "a-b", 'a"b', "a;b", "é", "x".repeat(64), "pg_temp", "a\n"];
  for (const name of [...names, "information_schema"]) {
    assert.throws(() => parseSchemaName(name), SyntaxError, name);
  }
});
