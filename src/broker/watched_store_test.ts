import assert from "node:assert/strict";
import { VirtualClock } from "../simulation/virtual_clock.ts";
import { FakeStore } from "./testing/fake_store.ts";
import { watchStore } from "./watched_store.ts";

Deno.test("a watched store tells of each call whether PostgreSQL answered, and does the same", async () => {
  const told: string[] = [];
  const store = new FakeStore({ clock: new VirtualClock() });
  const watched = watchStore(store, {
    onAnswer: (call) => told.push(`${call} answered`),
    onSilence: (call) => told.push(`${call} silent`),
  });
  assert.equal(await watched.health(), "15.0");
  store.isAway = true;
  await assert.rejects(watched.readFlags(), /away/);
  store.isAway = false;
  store.migrationError = new Error("too new");
  await assert.rejects(watched.migrate(), store.migrationError);
  await watched.close();
  assert.equal(store.isClosed, true);
  assert.deepEqual(told, ["health answered", "readFlags silent", "migrate answered"]);
});
