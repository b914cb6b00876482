import assert from "node:assert/strict";
import { fakeCipher } from "./testing/fake_cipher.ts";
import { SpoolWorld } from "./testing/spool_world.ts";
import type { SpoolOptions } from "./spool_options.ts";
import type { SpoolRecord } from "./spool_record.ts";

const KEY_A: Partial<SpoolOptions> = { cipher: fakeCipher(0x0a) };
const KEY_B: Partial<SpoolOptions> = { cipher: fakeCipher(0x0b) };

/** Appends records under a key, one after the other, while nothing drains. */
async function spoolUnder(
  world: SpoolWorld,
  options: Partial<SpoolOptions>,
  records: readonly SpoolRecord[],
): Promise<void> {
  world.isPaused = true;
  const spool = await world.open(options);
  for (const record of records) await spool.append([record]);
  await spool.close();
  world.isPaused = false;
}

function ids(records: readonly SpoolRecord[]): string[] {
  return records.map((record) => record.messageId);
}

Deno.test("with a key nothing of a message can be read in the files", async () => {
  const world = new SpoolWorld();
  await spoolUnder(world, KEY_A, [world.record({ queue: "secret-queue", payload: '"secret"' })]);
  const text = new TextDecoder().decode(world.fileSystem.contentOf(world.segmentPaths()[0]!));
  assert.doesNotMatch(text, /secret|t1|m1/);
});

Deno.test("records under another key stay, are reported, and drain when the key is back", async () => {
  const world = new SpoolWorld();
  const records = world.records(3);
  await spoolUnder(world, KEY_A, records);
  for (const wrong of [KEY_B, {}]) {
    const spool = await world.open(wrong);
    await spool.drained();
    assert.equal(world.sink.stored.length, 0);
    assert.equal(world.segmentNames().length, 1);
    assert.deepEqual([spool.stats().lockedCount, spool.stats().pendingCount], [3, 3]);
    assert.equal(spool.stats().failedFiles.count, 0);
    const entry = world.logger.entries.findLast(({ message }) => message.includes("another key"));
    assert.equal(entry?.level, "error");
    assert.equal(entry?.fields["count"], 3);
    await spool.close();
  }
  const spool = await world.open(KEY_A);
  await spool.drained();
  assert.deepEqual(world.sink.stored, records);
  await spool.close();
});

Deno.test("records under another key block their own partitions, and nothing else", async () => {
  const world = new SpoolWorld();
  const locked = world.record({ partition: "locked" });
  await spoolUnder(world, KEY_A, [locked]);
  const spool = await world.open(KEY_B);
  await spool.drained();
  assert.ok(spool.holds(locked));
  await assert.rejects(spool.admit([locked]), { reason: "locked" });
  await assert.rejects(spool.append([world.record(), locked]), { reason: "locked" });

  const free = world.record({ partition: "free" });
  assert.equal(await spool.admit([free]), "store");
  await spool.append([free]);
  await spool.drained();
  assert.deepEqual(ids(world.sink.stored), ids([free]));
  await spool.close();
});

Deno.test("records that are not sealed drain with any key, before what is appended now", async () => {
  const world = new SpoolWorld();
  const plain = world.records(2);
  await spoolUnder(world, {}, plain);
  const spool = await world.open(KEY_A);
  const sealed = world.record();
  await spool.append([sealed]);
  await spool.drained();
  assert.deepEqual(ids(world.sink.stored), ids([...plain, sealed]));
  await spool.close();
});

Deno.test("through changes of keys each partition keeps its order", async () => {
  const world = new SpoolWorld();
  const [a, p, b, a2] = [
    world.record({ partition: "a" }),
    world.record({ partition: "p" }),
    world.record({ partition: "b" }),
    world.record({ partition: "a" }),
  ];
  await spoolUnder(world, KEY_A, [a]);
  await spoolUnder(world, {}, [p]);
  await spoolUnder(world, KEY_B, [b]);
  await spoolUnder(world, KEY_A, [a2]);
  assert.equal(world.segmentNames().length, 4);
  for (const [options, expected] of [[{}, [p]], [KEY_B, [p, b]], [KEY_A, [p, b, a, a2]]] as const) {
    const spool = await world.open(options);
    await spool.drained();
    assert.deepEqual(ids(world.sink.stored), ids(expected));
    await spool.close();
  }
});

Deno.test("what was stored before the key changed blocks nothing, once the sink says so", async () => {
  const world = new SpoolWorld();
  world.fileSystem.fault = (operation) => operation === "remove" ? "EACCES" : undefined;
  const first = await world.open(KEY_A);
  const record = world.record();
  await first.append([record]);
  await first.drained();
  await first.close();
  world.fileSystem.fault = () => undefined;
  assert.equal(world.segmentNames().length, 1);

  const second = await world.open(KEY_B);
  await second.drained();
  assert.equal(await second.admit([record]), "store");
  assert.deepEqual(world.segmentNames(), []);
  assert.equal(second.stats().pendingCount, 0);
  await second.close();
});

Deno.test("a log that is locked half drained gives its rest when the key is back", async () => {
  const world = new SpoolWorld();
  const records = world.records(6);
  await spoolUnder(world, KEY_A, records);
  const first = await world.open({ ...KEY_A, batchRecordsMax: 2 });
  world.sink.gate = () => {
    world.isPaused = world.sink.attempts.length === 2;
    return Promise.resolve();
  };
  await world.clock.advance(0);
  await first.close();
  assert.equal(world.sink.stored.length, 4);
  world.sink.gate = () => Promise.resolve();
  world.isPaused = false;

  const second = await world.open(KEY_B);
  await second.drained();
  assert.equal(second.stats().lockedCount, 2);
  await second.close();

  const third = await world.open(KEY_A);
  await third.drained();
  assert.deepEqual(world.sink.stored, records);
  await third.close();
});

Deno.test("a record that does not open with its own key is set aside, and the others drain", async () => {
  const world = new SpoolWorld();
  const records = world.records(3);
  const cipher = fakeCipher(0x0a);
  await spoolUnder(world, KEY_A, records);
  const open: typeof cipher.open = async (sealed) => {
    const plain = await cipher.open(sealed);
    if (new TextDecoder().decode(plain).includes('"m2"')) throw new Error("The tag does not match");
    return plain;
  };
  const spool = await world.open({ cipher: { ...cipher, open } });
  await spool.drained();
  assert.equal(spool.stats().failedCount, 1);
  assert.deepEqual(ids(world.sink.stored), ["m1", "m3"]);
  const entry = world.logger.entries.find(({ message }) => message.includes("set aside"));
  assert.match(String(entry?.fields["reason"]), /tag/);
  await spool.close();
});
