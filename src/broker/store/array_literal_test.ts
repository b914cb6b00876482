import assert from "node:assert/strict";
import { arrayLiteral } from "./array_literal.ts";

Deno.test("an array literal quotes what would end an element", () => {
  assert.equal(arrayLiteral([]), "{}");
  assert.equal(arrayLiteral(["a", "", "NULL", null]), `{"a","","NULL",NULL}`);
  assert.equal(arrayLiteral([`"`, "\\", "},{", "\n"]), `{"\\"","\\\\","},{","\n"}`);
});
