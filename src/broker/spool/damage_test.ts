import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import { DIRECTORY, SpoolWorld } from "./testing/spool_world.ts";

/** A disk with a spool of five records in one segment, and where each of them ends. */
async function fiveRecords() {
  const world = new SpoolWorld();
  world.isPaused = true;
  const spool = await world.open();
  const ends: number[] = [];
  for (let n = 1; n <= 5; n++) {
    await spool.append([world.record({ payload: `"${"x".repeat(7 * n)}"` })]);
    ends.push(spool.stats().bytes);
  }
  await spool.close();
  world.isPaused = false;
  return { world, path: world.segmentPaths()[0]!, ends };
}

function storedIds(world: SpoolWorld): string[] {
  return world.sink.stored.map((record) => record.messageId);
}

const ALL = ["m1", "m2", "m3", "m4", "m5"];

Deno.test("a bit flipped at any byte of the spool costs that record alone, which is kept and reported", async () => {
  const { ends } = await fiveRecords();
  for (let offset = 0; offset < ends[4]!; offset++) {
    const { world, path } = await fiveRecords();
    world.fileSystem.contentOf(path)[offset]! ^= 1 << offset % 8;
    const spool = await world.open();
    await spool.drained();
    const hit = ends.findIndex((end) => offset < end);
    assert.deepEqual(storedIds(world), ALL.toSpliced(hit, 1), `byte ${offset}`);

    const reports = world.logger.entries.filter(({ message }) => message.includes("damaged"));
    const start = ends[hit - 1] ?? 0;
    const length = ends[hit]! - start;
    assert.equal(reports[0]?.fields["offset"], start);
    assert.equal(reports[0]?.fields["bytes"], length);
    const { failedCount, failedFiles, pendingCount } = spool.stats();
    assert.deepEqual(failedFiles, { count: 1, totalBytes: length });
    assert.deepEqual([failedCount, pendingCount], [0, 0]);
    assert.deepEqual(world.segmentNames(), []);
    await spool.close();
  }
});

Deno.test("a tail torn at any length costs one record at most, and is reported", async () => {
  const { ends } = await fiveRecords();
  for (let length = 0; length <= ends[4]!; length++) {
    const { world, path } = await fiveRecords();
    world.fileSystem.cut(path, length);
    const spool = await world.open();
    await spool.drained();
    const whole = ends.filter((end) => end <= length).length;
    assert.deepEqual(storedIds(world), ALL.slice(0, whole), `${length} bytes`);
    const isTorn = length > (ends[whole - 1] ?? 0);
    assert.equal(world.logged().some((message) => message.includes("damaged")), isTorn);
    assert.deepEqual([spool.stats().pendingCount, world.segmentNames()], [0, []]);
    await spool.close();
  }
});

Deno.test("a bit that flips under a running spool costs that record alone, and frees its partition", async () => {
  for (let offset = 0;; offset += 11) {
    const world = new SpoolWorld();
    world.isPaused = true;
    const spool = await world.open();
    const records = ALL.map((_, i) => world.record({ partition: `p${i}` }));
    const ends: number[] = [];
    for (const record of records) {
      await spool.append([record]);
      ends.push(spool.stats().bytes);
    }
    if (offset >= ends[4]!) break;
    world.fileSystem.contentOf(world.segmentPaths()[0]!)[offset]! ^= 1;
    world.isPaused = false;
    spool.wake();
    await spool.drained();
    const hit = ends.findIndex((end) => offset < end);
    assert.deepEqual(storedIds(world), ALL.toSpliced(hit, 1));
    assert.ok(records.every((record) => !spool.holds(record)));
    assert.equal(spool.stats().pendingCount, 0);

    const next = world.record();
    await spool.append([next]);
    await spool.drained();
    assert.equal(storedIds(world).at(-1), next.messageId);
    assert.equal(spool.stats().pendingCount, 0);
    await spool.close();
  }
});

Deno.test("a damaged record that is passed while others wait holds its partition no more", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  const spool = await world.open({ batchRecordsMax: 1 });
  const [lost, stored, waiting] = ["a", "b", "c"].map((partition) => world.record({ partition }));
  for (const record of [lost!, stored!, waiting!]) await spool.append([record]);
  world.fileSystem.contentOf(world.segmentPaths()[0]!)[60]! ^= 1;
  world.isPaused = false;
  world.sink.gate = () => {
    world.isPaused = true;
    return Promise.resolve();
  };
  spool.wake();
  await settle();
  assert.deepEqual([lost!, stored!, waiting!].map((record) => spool.holds(record)), [
    false,
    false,
    true,
  ]);
  await spool.close();
});

Deno.test("files that are none of the spool's are left alone", async () => {
  const { world } = await fiveRecords();
  for (const name of ["notes.txt", "1-x.segment", "0000000009-plain.segment"]) {
    const file = await world.fileSystem.create(`${DIRECTORY}/${name}`);
    await file.close();
  }
  const spool = await world.open();
  await spool.drained();
  assert.deepEqual(storedIds(world), ALL);
  assert.equal(world.fileSystem.namesIn(DIRECTORY).length, 3);
  await spool.close();
});
