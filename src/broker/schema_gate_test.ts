import assert from "node:assert/strict";
import { Prng } from "../simulation/prng.ts";
import { VirtualClock } from "../simulation/virtual_clock.ts";
import { SchemaGate } from "./schema_gate.ts";
import { StoreUnavailableError } from "./store/store.ts";
import { FakeStore } from "./testing/fake_store.ts";
import { MemoryLogger } from "./testing/memory_logger.ts";

function bench() {
  const clock = new VirtualClock();
  const store = new FakeStore({ clock });
  const logger = new MemoryLogger();
  const gate = new SchemaGate({ store, clock, random: new Prng(1).random, logger });
  return { clock, store, logger, gate };
}

Deno.test("the gate opens with the first migration", async () => {
  const { store, gate } = bench();
  assert.throws(() => gate.requireOpen(), StoreUnavailableError);
  await gate.start();
  gate.requireOpen();
  assert.equal(store.migrateCount, 1);
});

Deno.test("while PostgreSQL is away the migration is tried again, at most every 5 s", async () => {
  const { clock, store, gate, logger } = bench();
  store.isAway = true;
  await gate.start();
  await clock.advance(60_000);
  assert.throws(() => gate.requireOpen(), StoreUnavailableError);
  assert(store.migrateCount >= 60_000 / 5000, `${store.migrateCount} attempts`);
  assert(store.migrateCount <= 25, `${store.migrateCount} attempts`);
  store.isAway = false;
  await clock.advance(5000);
  gate.requireOpen();
  assert.equal(logger.entries.at(-1)?.level, "info");
  assert.equal(clock.pending, 0);
});

Deno.test("a schema that is refused at the start fails the start", async () => {
  const { clock, store, gate } = bench();
  store.migrationError = new Error("the schema is newer than this program");
  await assert.rejects(gate.start(), store.migrationError);
  assert.equal(clock.pending, 0);
  await gate.close();
});

Deno.test("a schema that is refused later is reported and tried again", async () => {
  const { clock, store, gate, logger } = bench();
  store.isAway = true;
  await gate.start();
  store.isAway = false;
  store.migrationError = new Error("the schema is newer than this program");
  await clock.advance(10_000);
  assert.throws(() => gate.requireOpen(), StoreUnavailableError);
  assert.equal(logger.entries.at(-1)?.fields["error"], store.migrationError);
  store.migrationError = undefined;
  await clock.advance(5000);
  gate.requireOpen();
});

Deno.test("a closed gate makes no more attempts", async () => {
  const { clock, store, gate } = bench();
  store.isAway = true;
  await gate.start();
  await gate.close();
  await clock.advance(60_000);
  assert.equal(store.migrateCount, 1);
  assert.equal(clock.pending, 0);
});
