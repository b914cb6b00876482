import assert from "node:assert/strict";
import { findSpoolsBeside } from "./found_spools.ts";
import { DIRECTORY, SpoolWorld } from "./testing/spool_world.ts";

const BESIDE = "/data/queen-spool/b";

Deno.test("a spool beside is found, and drained by opening it here", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  const theirs = await world.open({ directory: BESIDE });
  const records = world.records(3);
  await theirs.append(records);
  const { bytes } = theirs.stats();
  await theirs.close();
  world.isPaused = false;

  const own = await world.open();
  await world.fileSystem.makeDirectory("/data/queen-spool/empty");
  const found = await findSpoolsBeside(world.fileSystem, DIRECTORY);
  assert.deepEqual(found, [{ directory: BESIDE, segmentCount: 1, bytes }]);

  const adopted = await world.open({ directory: found[0]!.directory });
  await adopted.drained();
  await adopted.close();
  assert.deepEqual(world.sink.stored, records);
  assert.deepEqual(await findSpoolsBeside(world.fileSystem, DIRECTORY), []);
  await own.close();
});

Deno.test("the own spool is not beside itself, and nothing is where there is no directory", async () => {
  const world = new SpoolWorld();
  assert.deepEqual(await findSpoolsBeside(world.fileSystem, DIRECTORY), []);
  world.isPaused = true;
  const own = await world.open();
  await own.append(world.records(1));
  assert.deepEqual(await findSpoolsBeside(world.fileSystem, DIRECTORY), []);
  await own.close();
});

Deno.test("a directory that may not be read is none of ours, and any other error is told", async () => {
  const world = new SpoolWorld();
  await (await world.open({ directory: BESIDE })).close();
  world.fileSystem.fault = (operation, path) =>
    operation === "list" && path === BESIDE ? "EACCES" : undefined;
  assert.deepEqual(await findSpoolsBeside(world.fileSystem, DIRECTORY), []);
  world.fileSystem.fault = (operation) => operation === "list" ? "EIO" : undefined;
  await assert.rejects(findSpoolsBeside(world.fileSystem, DIRECTORY), { code: "EIO" });
});
