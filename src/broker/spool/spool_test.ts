import assert from "node:assert/strict";
import { SpoolUnavailableError } from "./errors.ts";
import { DIRECTORY, EPOCH_MS, SpoolWorld } from "./testing/spool_world.ts";
import { settle } from "../../simulation/virtual_clock.ts";

function ids(records: readonly { readonly messageId: string }[]): string[] {
  return records.map((record) => record.messageId);
}

Deno.test("what is appended drains in order, to the byte, and leaves no file", async () => {
  const world = new SpoolWorld();
  const spool = await world.open();
  const records = [
    ...world.records(3),
    world.record({ payload: ' {"é": "\\ud800", "n": 12345678901234567890}\n', partition: "p\n\0" }),
  ];
  await spool.append(records.slice(0, 2));
  await spool.append(records.slice(2));
  await spool.drained();
  assert.deepEqual(world.sink.stored, records);
  assert.deepEqual(world.segmentNames(), []);
  await spool.close();
  assert.equal(world.fileSystem.openCount, 0);
});

Deno.test("an append of nothing writes nothing", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open();
  await spool.append([]);
  assert.deepEqual(world.segmentNames(), []);
});

Deno.test("nothing drains while it is paused, at the start either", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  const first = await world.open();
  await first.append(world.records(3));
  await world.clock.advance(60_000);
  await first.close();
  await using second = await world.open();
  await world.clock.advance(60_000);
  assert.equal(world.sink.stored.length, 0);
  assert.equal(second.stats().pendingCount, 3);

  world.isPaused = false;
  second.wake();
  await second.drained();
  assert.equal(world.sink.stored.length, 3);
});

Deno.test("a pause that ends without a word is noticed within a second", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  await using spool = await world.open();
  await spool.append(world.records(1));
  world.isPaused = false;
  await world.clock.advance(1000);
  assert.equal(world.sink.stored.length, 1);
  await spool.close();
});

Deno.test("a pause that begins while records go one by one stops them", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  await using spool = await world.open();
  const records = world.records(5);
  await spool.append(records);
  world.sink.isRefused = ({ messageId }) => messageId === "m5";
  world.sink.gate = () => {
    world.isPaused = world.sink.attempts.length === 3;
    return Promise.resolve();
  };
  world.isPaused = false;
  spool.wake();
  await settle();
  assert.deepEqual(world.sink.attempts, [5, 1, 1]);
  assert.deepEqual(ids(world.sink.stored), ["m1", "m2"]);
});

Deno.test("a failed sink is tried again by a backoff, and nothing is stored twice", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open();
  const outcomes = ["fails", "unknown", "fails", "done"] as const;
  let attempt = 0;
  world.sink.attempt = () => outcomes[attempt++] ?? "done";
  const records = world.records(3);
  await spool.append(records);
  await settle();
  assert.match(spool.stats().sinkError ?? "", /away/);
  assert.ok(spool.stats().isHealthy, "the spool itself is well");
  assert.equal(world.sink.attempts.length, 1);
  await world.clock.advance(30_000);
  assert.deepEqual(world.sink.stored, records);
  assert.deepEqual(world.sink.attempts, [3, 3, 3, 3]);
  assert.equal(spool.stats().sinkError, undefined);
});

Deno.test("a wake cuts the backoff short", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open();
  world.sink.attempt = () => "fails";
  await spool.append(world.records(1));
  await world.clock.advance(60_000);
  const count = world.sink.attempts.length;
  world.sink.attempt = () => "done";
  spool.wake();
  await spool.drained();
  assert.equal(world.sink.attempts.length, count + 1);
  assert.equal(world.clock.now(), 60_000);
});

Deno.test("a batch that was stored after all is not stored again, though more was appended", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open();
  world.sink.attempt = () => world.sink.attempts.length === 1 ? "unknown" : "done";
  const records = world.records(7);
  await spool.append(records.slice(0, 3));
  await settle();
  await spool.append(records.slice(3));
  await world.clock.advance(10_000);
  assert.deepEqual(world.sink.stored, records);
});

Deno.test("an attempt that arrives after the next one does nothing", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open();
  world.sink.attempt = () => world.sink.attempts.length === 1 ? "late" : "done";
  const records = world.records(3);
  await spool.append(records);
  await world.clock.advance(60_000);
  assert.deepEqual(world.sink.stored, records);
});

Deno.test("a sink that keeps its position without a word is not asked in a busy loop", async () => {
  const world = new SpoolWorld();
  const attempts: number[] = [];
  await using spool = await world.open({
    sink: {
      position: () => Promise.resolve(0),
      store: () => {
        attempts.push(world.clock.now());
        return Promise.resolve({ position: 0 });
      },
    },
  });
  await spool.append(world.records(1));
  await world.clock.advance(20_000);
  assert.ok(attempts.length > 2 && attempts.length < 15, `${attempts.length} attempts`);
});

Deno.test("a record at fault is set aside by itself, in whole, and the others are stored", async () => {
  const world = new SpoolWorld();
  const spool = await world.open();
  world.sink.isRefused = ({ messageId }) => messageId === "m2";
  await spool.append(world.records(4));
  await spool.drained();
  assert.deepEqual(ids(world.sink.stored), ["m1", "m3", "m4"]);
  const { failedCount, failedFiles, pendingCount } = spool.stats();
  assert.deepEqual({ failedCount, count: failedFiles.count, pendingCount }, {
    failedCount: 1,
    count: 1,
    pendingCount: 0,
  });
  const [name] = world.fileSystem.namesIn(`${DIRECTORY}/failed`);
  const bytes = world.fileSystem.contentOf(`${DIRECTORY}/failed/${name}`);
  assert.match(new TextDecoder().decode(bytes), /"m2".*\n\{"n":2\}$/);
  assert.equal(failedFiles.totalBytes, bytes.length);
  const entry = world.logger.entries.find((entry) => entry.fields["messageId"] === "m2");
  assert.equal(entry?.level, "error");
  assert.match(String(entry?.fields["reason"]), /22P02/);
  await spool.close();

  await using next = await world.open();
  assert.deepEqual(next.stats().failedFiles, failedFiles);
  assert.equal(next.stats().failedCount, 1);
});

Deno.test("records that failed in different runs are kept beside each other", async () => {
  const world = new SpoolWorld();
  world.sink.isRefused = () => true;
  for (let run = 1; run <= 3; run++) {
    await using spool = await world.open();
    await spool.append(world.records(1));
    await spool.drained();
    assert.equal(spool.stats().failedCount, run);
  }
  assert.equal(world.fileSystem.namesIn(`${DIRECTORY}/failed`).length, 3);
});

Deno.test("a spool holds a partition from the append until its last record is stored", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open({ batchRecordsMax: 2 });
  world.isPaused = true;
  const [a, b] = [world.record(), world.record({ partition: "other" })];
  const sameNames = world.record({ tenant: "00000000-0000-0000-0000-000000000002" });
  const appended = spool.append([a, a, b]);
  assert.ok(spool.holds(a) && spool.holds(b), "at once");
  assert.ok(!spool.holds(sameNames), "another tenant's partition of that name");
  await appended;
  assert.equal(await spool.admit([sameNames, a]), "spool");
  world.isPaused = false;
  world.sink.gate = () => {
    world.isPaused = true;
    return Promise.resolve();
  };
  spool.wake();
  await settle();
  assert.deepEqual([spool.holds(a), spool.holds(b)], [false, true]);
});

Deno.test("a restart finds which partitions are held, and goes on where the sink is", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  const first = await world.open({ segmentBytesMax: 400 });
  const records = [
    ...world.records(4, { partition: "a" }),
    ...world.records(4, { partition: "b" }),
  ];
  for (const record of records) await first.append([record]);
  await first.close();
  assert.ok(world.segmentNames().length > 1);

  await using second = await world.open();
  assert.ok(second.holds(records[0]!) && second.holds(records[7]!));
  assert.equal(second.stats().pendingCount, 8);
  const later = world.record({ partition: "a" });
  await second.append([later]);
  world.isPaused = false;
  second.wake();
  await second.drained();
  assert.deepEqual(world.sink.stored, [...records, later]);
  assert.ok(!second.holds(later));
  assert.deepEqual(world.segmentNames(), []);
});

Deno.test("at its limit it refuses, and takes more once it has drained", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  await using spool = await world.open({ bytesMax: 1000 });
  const refused: unknown[] = [];
  let count = 0;
  for (; refused.length === 0 && count < 100; count++) {
    await spool.append(world.records(1)).catch((error) => refused.push(error));
  }
  const [error] = refused;
  assert.ok(error instanceof SpoolUnavailableError);
  assert.equal(error.reason, "full");
  assert.ok(spool.stats().bytes <= 1000);
  assert.equal(spool.stats().pendingCount, count - 1);
  assert.ok(!spool.stats().isHealthy);
  world.isPaused = false;
  spool.wake();
  await spool.drained();
  await spool.append(world.records(1));
  assert.ok(spool.stats().isHealthy);
});

Deno.test("appends that wait for the disk count towards the limit", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  await using spool = await world.open({ bytesMax: 1000 });
  const results = await Promise.allSettled(
    world.records(50).map((record) => spool.append([record])),
  );
  assert.ok(results.some(({ status }) => status === "fulfilled"));
  assert.ok(results.some(({ status }) => status === "rejected"));
  assert.ok(spool.stats().bytes <= 1000);
});

Deno.test("the failed folder counts towards the limit", async () => {
  const world = new SpoolWorld();
  world.sink.isRefused = () => true;
  await using spool = await world.open({ bytesMax: 1000 });
  const record = world.record({ payload: `"${"x".repeat(700)}"` });
  await spool.append([record]);
  await spool.drained();
  assert.deepEqual(world.segmentNames(), []);
  await assert.rejects(spool.append([record]), { reason: "full", message: /failed folder/ });
});

Deno.test("appends that wait are written in parts where they are large together", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  await using spool = await world.open();
  const sizes: number[] = [];
  world.fileSystem.fault = (operation, path) => {
    if (operation === "sync") sizes.push(world.fileSystem.contentOf(path).length);
    return undefined;
  };
  const record = world.record({ payload: `"${"x".repeat(3_000_000)}"` });
  await Promise.all([record, record, record].map((record) => spool.append([record])));
  assert.equal(sizes.length, 2);
});

Deno.test("one sync serves all appends that wait", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  await using spool = await world.open();
  let syncCount = 0;
  world.fileSystem.fault = (operation) => {
    if (operation === "sync") syncCount++;
    return undefined;
  };
  const records = world.records(100);
  for (let round = 0; round < 3; round++) {
    await Promise.all(records.map((record) => spool.append([record])));
  }
  assert.equal(syncCount, 3);
});

Deno.test("a closed spool takes nothing more, and what it has taken is on disk", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  const spool = await world.open();
  const given = spool.append(world.records(2));
  await Promise.all([given, spool.close(), spool.close()]);
  assert.equal(world.fileSystem.openCount, 0);
  await assert.rejects(spool.append(world.records(1)), { reason: "closed" });
  world.restart();
  await using next = await world.open();
  assert.equal(next.stats().pendingCount, 2);
});

Deno.test("a close waits for the batch under way, and drained() ends with it", async () => {
  const world = new SpoolWorld();
  const spool = await world.open();
  let open = () => {};
  world.sink.gate = () => new Promise((resolve) => open = resolve);
  await spool.append(world.records(1));
  await settle();
  const drained = spool.drained();
  let isClosed = false;
  const closed = spool.close().then(() => isClosed = true);
  await settle();
  assert.ok(!isClosed);
  open();
  await Promise.all([closed, drained]);
  assert.equal(world.sink.stored.length, 1);
  await spool.drained();
});

Deno.test("stats tell the age of the oldest record, by the wall clock", async () => {
  const world = new SpoolWorld();
  world.isPaused = true;
  await using spool = await world.open();
  assert.equal(spool.stats().oldestAgeMs, undefined);
  await spool.append([world.record({ acceptedAt: EPOCH_MS - 500 }), world.record()]);
  await world.clock.advance(2000);
  assert.equal(spool.stats().oldestAgeMs, 2500);
  world.isPaused = false;
  spool.wake();
  await spool.drained();
  assert.equal(spool.stats().oldestAgeMs, undefined);
});

Deno.test("a start that fails lets go of the lock", async () => {
  const world = new SpoolWorld();
  let held = 0;
  const acquireLock = () => {
    held++;
    return Promise.resolve({
      release: () => {
        held--;
        return Promise.resolve();
      },
    });
  };
  world.fileSystem.fault = (operation) => operation === "list" ? "EIO" : undefined;
  await assert.rejects(world.open({ acquireLock }), { code: "EIO" });
  assert.equal(held, 0);
});

Deno.test("a PostgreSQL that went back to a backup gets again what is still on disk", async () => {
  const world = new SpoolWorld();
  await using spool = await world.open({ batchRecordsMax: 2 });
  world.isPaused = true;
  const records = world.records(8);
  await spool.append(records);
  world.isPaused = false;
  world.sink.gate = () => {
    world.isPaused = world.sink.attempts.length === 3;
    return Promise.resolve();
  };
  const backup = world.sink.positions;
  spool.wake();
  await settle();
  assert.equal(world.sink.stored.length, 6);
  world.sink.restoreBackup(backup, 0);
  world.isPaused = false;
  spool.wake();
  await spool.drained();
  assert.deepEqual(world.sink.stored, records);
});
