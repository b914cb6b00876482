import assert from "node:assert/strict";
import process from "node:process";
import { MemoryLogger } from "../broker/testing/memory_logger.ts";
import { surviveErrors } from "./signals.ts";

Deno.test("errors that nobody caught are logged and end nothing", () => {
  const logger = new MemoryLogger();
  const stop = surviveErrors(logger);
  const thrown = new TypeError("Cannot read properties of null (reading 'write')");
  const rejected = new Error("rejected");
  try {
    process.emit("uncaughtException", thrown);
    process.emit("unhandledRejection", rejected, Promise.resolve());
  } finally {
    stop();
  }
  assert.deepEqual(logger.entries.map(({ level, fields }) => [level, fields["error"]]), [
    ["error", thrown],
    ["error", rejected],
  ]);
});

Deno.test("once it is ended, nothing listens for errors any more", () => {
  const before = process.listenerCount("uncaughtException");
  surviveErrors(new MemoryLogger())();
  assert.equal(process.listenerCount("uncaughtException"), before);
});
