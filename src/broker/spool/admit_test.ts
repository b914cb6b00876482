import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import type { PushRoute, Spool } from "./spool.ts";
import type { SpoolRecord } from "./spool_record.ts";
import { SpoolWorld } from "./testing/spool_world.ts";

/** A spool of two batches of 2, of which the first is stored and the second waits for `open`. */
async function nearTheEnd(world: SpoolWorld) {
  world.isPaused = true;
  const spool = await world.open({ batchRecordsMax: 2 });
  const records = world.records(4);
  await spool.append(records);
  let open = () => {};
  world.sink.gate = () =>
    world.sink.attempts.length < 2 ? Promise.resolve() : new Promise((resolve) => open = resolve);
  world.isPaused = false;
  spool.wake();
  await settle();
  assert.equal(world.sink.attempts.length, 2);
  return { spool, record: records[0]!, open: () => open() };
}

/** Asks, and says what the answer is as soon as there is one. */
function asked(spool: Spool, record: SpoolRecord) {
  const question: { route: PushRoute | undefined } = { route: undefined };
  void spool.admit([record]).then((route) => question.route = route);
  return question;
}

Deno.test("a push goes to the store where nothing of its partition waits", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open();
  assert.equal(await spool.admit([world.record()]), "store");
  world.sink.attempt = () => "fails";
  await spool.append([world.record({ partition: "other" })]);
  assert.equal(await spool.admit([world.record()]), "store");
});

Deno.test("a push goes to the spool while it is paused", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open();
  world.isPaused = true;
  assert.equal(await spool.admit([world.record()]), "spool");
});

Deno.test("a push goes behind what waits, at once, where the sink is away", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open();
  world.sink.attempt = () => "fails";
  const record = world.record();
  await spool.append([record]);
  await world.clock.advance(10_000);
  const question = asked(spool, record);
  await settle();
  assert.equal(question.route, "spool");
});

Deno.test("a push waits for the last batch, and goes to the store after it", async () => {
  const world = new SpoolWorld();
  const { spool, record, open } = await nearTheEnd(world);
  const question = asked(spool, record);
  await world.clock.advance(900);
  assert.equal(question.route, undefined);
  open();
  await settle();
  assert.equal(question.route, "store");
  await spool.close();
});

Deno.test("a push of a partition that is not held does not wait for the last batch", async () => {
  const world = new SpoolWorld();
  const { spool, open } = await nearTheEnd(world);
  const question = asked(spool, world.record({ partition: "other" }));
  await settle();
  assert.equal(question.route, "store");
  open();
  await spool.close();
});

Deno.test("a push waits for the last batch a second at most, and goes behind it then", async () => {
  const world = new SpoolWorld();
  const { spool, record, open } = await nearTheEnd(world);
  const question = asked(spool, record);
  await world.clock.advance(999);
  assert.equal(question.route, undefined);
  await world.clock.advance(1);
  assert.equal(question.route, "spool");
  open();
  await spool.close();
});

Deno.test("a push waits a second at most, though one last batch follows the other", async () => {
  const world = new SpoolWorld();
  const { spool, record, open } = await nearTheEnd(world);
  const question = asked(spool, record);
  await world.clock.advance(700);
  await spool.append([record]);
  open();
  await world.clock.advance(299);
  assert.equal(world.sink.attempts.length, 3);
  assert.equal(question.route, undefined);
  await world.clock.advance(1);
  assert.equal(question.route, "spool");
  open();
  await spool.close();
});

Deno.test("a last batch that hangs costs the pushes a second, not one each", async () => {
  const world = new SpoolWorld();
  const { spool, record, open } = await nearTheEnd(world);
  await world.clock.advance(1000);
  const question = asked(spool, record);
  await settle();
  assert.equal(question.route, "spool");
  open();
  await spool.close();
});

Deno.test("a last batch that fails sends the pushes that wait for it to the spool", async () => {
  const world = new SpoolWorld();
  const { spool, record, open } = await nearTheEnd(world);
  world.sink.attempt = () => "fails";
  const question = asked(spool, record);
  await settle();
  open();
  await settle();
  assert.equal(question.route, "spool");
  await spool.close();
});

Deno.test("a pause that begins sends the pushes that wait to the spool", async () => {
  const world = new SpoolWorld();
  const { spool, record, open } = await nearTheEnd(world);
  const question = asked(spool, record);
  await settle();
  world.isPaused = true;
  spool.wake();
  await settle();
  assert.equal(question.route, "spool");
  open();
  await spool.close();
});

Deno.test("where pushes come faster than they drain, they wait until it gains on them", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  await using spool = await world.open({ batchRecordsMax: 2 });
  const record = world.record();
  await spool.append(world.records(6));
  let open = () => {};
  world.sink.gate = () => new Promise((resolve) => open = resolve);
  world.isPaused = false;
  spool.wake();
  await settle();
  await spool.append(world.records(6));
  open();
  await settle();
  // The first batch took 2, and 6 were added: 10 are left. The second takes 2, and 4 are added.
  await spool.append(world.records(4));
  open();
  await settle();
  const question = asked(spool, record);
  await settle();
  assert.equal(question.route, undefined, "12 are left, more than before");
  open();
  await settle();
  assert.equal(question.route, "spool", "10 are left, fewer than before");
  open();
  world.sink.gate = () => Promise.resolve();
});
