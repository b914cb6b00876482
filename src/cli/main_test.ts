import assert from "node:assert/strict";
import process from "node:process";
import { main } from "./main.ts";

Deno.test("importing the command starts nothing, and running it resolves to an exit code", async () => {
  const { write } = process.stdout;
  let said = "";
  process.stdout.write = (text: string | Uint8Array) => {
    said += text;
    return true;
  };
  try {
    assert.equal(await main(["--version"]), 0);
  } finally {
    process.stdout.write = write;
  }
  assert.match(said, /^\d+\.\d+\.\d+\n$/);
});
