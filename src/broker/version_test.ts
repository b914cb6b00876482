import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { VERSION } from "./version.ts";

Deno.test("the version is that of the package", () => {
  assert.equal(VERSION, manifest.version);
});
