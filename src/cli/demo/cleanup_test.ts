import assert from "node:assert/strict";
import { Cleanup } from "./cleanup.ts";

Deno.test("a cleanup undoes the latest first, each once, and goes on after a failure", async () => {
  const cleanup = new Cleanup();
  const done: number[] = [];
  const failure = new Error("cannot be undone");
  cleanup.add(() => Promise.resolve(done.push(1)));
  cleanup.add(() => Promise.reject(failure));
  cleanup.add(() => Promise.resolve(done.push(3)));
  assert.deepEqual(await cleanup.run(), [failure]);
  assert.deepEqual(await cleanup.run(), []);
  assert.deepEqual(done, [3, 1]);
});
