import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import type { Operation } from "./testing/simulated_file_system.ts";
import { SpoolWorld } from "./testing/spool_world.ts";

/** Opens a paused spool with one record in it. */
async function begun(world: SpoolWorld) {
  world.isPaused = true;
  const spool = await world.open();
  await spool.append(world.records(1));
  return spool;
}

/** The ids of what a new start drains, on what the disk holds after a loss of power. */
async function storedAfterRestart(world: SpoolWorld): Promise<string[]> {
  world.restart();
  world.isPaused = false;
  const spool = await world.open();
  await spool.drained();
  await spool.close();
  return world.sink.stored.map((record) => record.messageId);
}

Deno.test("a full disk refuses an append, and later ones work as soon as there is room", async () => {
  const world = new SpoolWorld();
  const spool = await begun(world);
  world.fileSystem.capacityBytes = spool.stats().bytes + 50;
  await assert.rejects(spool.append(world.records(1)), { reason: "disk", message: /ENOSPC/ });
  const { isHealthy, lastError, pendingCount, bytes } = spool.stats();
  assert.ok(!isHealthy && lastError?.includes("ENOSPC"));
  assert.equal(pendingCount, 1);
  const [path] = world.segmentPaths();
  assert.equal(world.fileSystem.contentOf(path!).length, bytes, "cut to the last good record");

  world.fileSystem.capacityBytes = Infinity;
  await spool.append(world.records(1));
  assert.ok(spool.stats().isHealthy);
  assert.equal(world.segmentNames().length, 1, "in the same file");
  assert.deepEqual(await storedAfterRestart(world), ["m1", "m3"]);
});

Deno.test("a disk that stays full does not gather empty files", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  const spool = await world.open();
  world.fileSystem.capacityBytes = 0;
  for (let i = 0; i < 5; i++) {
    await assert.rejects(spool.append(world.records(1)), { reason: "disk" });
  }
  assert.ok(world.segmentNames().length <= 1);
  world.fileSystem.capacityBytes = Infinity;
  await spool.append(world.records(1));
  assert.deepEqual(await storedAfterRestart(world), ["m6"]);
});

for (const operation of ["write", "sync"] as const) {
  for (const code of ["EIO", "ENOSPC"]) {
    Deno.test(`a ${operation} that fails with ${code} refuses the append, and later ones work`, async () => {
      for (let seed = 1; seed <= 20; seed++) {
        const world = new SpoolWorld(seed, { isChoppy: true });
        const spool = await begun(world);
        let isBroken = true;
        world.fileSystem.fault = (asked) => {
          if (asked !== operation || !isBroken) return undefined;
          isBroken = false;
          return code;
        };
        await assert.rejects(spool.append(world.records(2)), { reason: "disk" });
        await spool.append(world.records(1));
        // A file whose sync has failed is not trusted again.
        assert.equal(world.segmentNames().length, operation === "sync" ? 2 : 1);
        assert.deepEqual(await storedAfterRestart(world), ["m1", "m4"]);
      }
    });
  }
}

Deno.test("a disk that refuses the repair as well loses nothing that was acknowledged", async () => {
  for (let seed = 1; seed <= 50; seed++) {
    const world = new SpoolWorld(seed, { isChoppy: true });
    const spool = await begun(world);
    world.fileSystem.fault = (asked) => asked === "sync" ? "EIO" : undefined;
    await assert.rejects(spool.append(world.records(2)), { reason: "disk" });
    world.fileSystem.fault = () => undefined;
    await spool.append(world.records(1));
    // What was refused may be stored all the same: its producer was told of no outcome.
    const stored = await storedAfterRestart(world);
    assert.deepEqual(stored.filter((id) => !["m2", "m3"].includes(id)), ["m1", "m4"]);
    assert.equal(new Set(stored).size, stored.length);
  }
});

for (const operation of ["create", "syncDirectory", "sync"] as const satisfies Operation[]) {
  Deno.test(`a first append whose ${operation} fails is refused, and later ones work`, async () => {
    const world = new SpoolWorld();
    world.isPaused = true;
    const spool = await world.open();
    world.fileSystem.fault = (asked) => asked === operation ? "EIO" : undefined;
    await assert.rejects(spool.append(world.records(1)), { reason: "disk" });
    assert.equal(spool.stats().pendingCount, 0);
    assert.deepEqual(world.segmentNames(), []);
    world.fileSystem.fault = () => undefined;
    await spool.append(world.records(1));
    assert.deepEqual(await storedAfterRestart(world), ["m2"]);
  });
}

Deno.test("where neither the write nor the repair works, another file is begun", async () => {
  const world = new SpoolWorld();
  const spool = await begun(world);
  world.fileSystem.fault = (asked) => ["write", "truncate"].includes(asked) ? "EIO" : undefined;
  await assert.rejects(spool.append(world.records(1)), { reason: "disk" });
  world.fileSystem.fault = () => undefined;
  await spool.append(world.records(1));
  assert.equal(world.segmentNames().length, 2);
  world.isPaused = false;
  spool.wake();
  await spool.drained();
  assert.deepEqual(world.sink.stored.map((record) => record.messageId), ["m1", "m3"]);
  assert.deepEqual(world.segmentNames(), []);
  await spool.close();
  assert.equal(world.fileSystem.openCount, 0);
});

Deno.test("an append that is refused holds no partition", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open();
  world.fileSystem.fault = (asked) => asked === "write" ? "EIO" : undefined;
  const record = world.record();
  const appended = spool.append([record]);
  assert.ok(spool.holds(record), "while it is under way");
  await assert.rejects(appended, { reason: "disk" });
  assert.ok(!spool.holds(record));
});

Deno.test("all appends of a group are refused where its sync fails, and none is drained", async () => {
  const world = new SpoolWorld();
  const spool = await world.open();
  world.fileSystem.fault = (asked) => asked === "sync" ? "EIO" : undefined;
  const results = await Promise.allSettled(
    world.records(10).map((record) => spool.append([record])),
  );
  assert.ok(results.every(({ status }) => status === "rejected"));
  world.fileSystem.fault = () => undefined;
  await spool.append(world.records(1));
  await spool.drained();
  assert.deepEqual(world.sink.stored.map((record) => record.messageId), ["m11"]);
  await spool.close();
});

Deno.test("a file that cannot be read is tried again, and reported until it can", async () => {
  const world = new SpoolWorld();
  const spool = await begun(world);
  world.fileSystem.fault = (asked) => asked === "read" ? "EIO" : undefined;
  world.isPaused = false;
  spool.wake();
  await world.clock.advance(20_000);
  assert.match(spool.stats().lastError ?? "", /EIO/);
  assert.equal(spool.stats().pendingCount, 1);
  world.fileSystem.fault = () => undefined;
  await world.clock.advance(5000);
  assert.equal(world.sink.stored.length, 1);
  assert.ok(spool.stats().isHealthy);
  await spool.close();
});

Deno.test("a record that can be neither stored nor set aside waits", async () => {
  const world = new SpoolWorld();
  const spool = await begun(world);
  world.sink.isRefused = () => true;
  world.fileSystem.fault = (asked) => asked === "write" ? "ENOSPC" : undefined;
  world.isPaused = false;
  spool.wake();
  await world.clock.advance(20_000);
  assert.equal(spool.stats().pendingCount, 1);
  assert.match(spool.stats().lastError ?? "", /ENOSPC/);
  world.fileSystem.fault = () => undefined;
  await world.clock.advance(5000);
  assert.equal(spool.stats().pendingCount, 0);
  assert.equal(spool.stats().failedFiles.count, 1);
  await spool.close();
});

Deno.test("a drained file that cannot be removed is reported, and stores nothing twice", async () => {
  const world = new SpoolWorld();
  const spool = await world.open();
  world.fileSystem.fault = (asked) => asked === "remove" ? "EACCES" : undefined;
  await spool.append(world.records(2));
  await spool.drained();
  assert.ok(world.logged().includes("A drained spool file could not be removed"));
  await spool.close();
  assert.equal(world.segmentNames().length, 1);
  assert.deepEqual(await storedAfterRestart(world), ["m1", "m2"]);
  assert.deepEqual(world.segmentNames(), []);
});

Deno.test("many appends on a disk that takes and gives bytes in pieces come through", async () => {
  for (let seed = 1; seed <= 10; seed++) {
    const world = new SpoolWorld(seed, { isChoppy: true });
    const spool = await world.open({ segmentBytesMax: 1000, batchRecordsMax: 7 });
    const records = world.records(100);
    await Promise.all(records.map(async (record, i) => {
      for (let turn = 0; turn < i % 10; turn++) await settle();
      await spool.append([record]);
    }));
    await spool.drained();
    assert.equal(new Set(world.sink.stored).size, 100);
    await spool.close();
    assert.equal(world.fileSystem.openCount, 0);
  }
});
