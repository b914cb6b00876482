import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import { fakeCipher } from "./testing/fake_cipher.ts";
import { SpoolWorld } from "./testing/spool_world.ts";
import type { SpoolOptions } from "./spool_options.ts";
import type { SpoolRecord } from "./spool_record.ts";

const OPTIONS: Partial<SpoolOptions> = { segmentBytesMax: 500, batchRecordsMax: 3 };

/** What was given to a spool, and what of it was acknowledged. */
class Ledger {
  readonly given: SpoolRecord[] = [];
  readonly acknowledged = new Set<SpoolRecord>();

  /** Checks that what is stored is what was acknowledged, once and in order, and nothing unknown. */
  check(stored: readonly SpoolRecord[], context: string): void {
    assert.equal(new Set(ids(stored)).size, stored.length, `stored twice: ${context}`);
    const place = new Map(ids(stored).map((id, i) => [id, i]));
    const lost = [...this.acknowledged].filter(({ messageId }) => !place.has(messageId));
    assert.deepEqual(ids(lost), [], `lost: ${context}`);
    const order = this.given.map(({ messageId }) => place.get(messageId))
      .filter((i) => i !== undefined);
    assert.deepEqual(order, order.toSorted((a, b) => a - b), `out of order: ${context}`);
    assert.equal(order.length, stored.length, `never given: ${context}`);
  }
}

function ids(records: readonly SpoolRecord[]): string[] {
  return records.map((record) => record.messageId);
}

/** The life of a spool with appends, segment changes, a full disk, a repair, a drain and a restart. */
async function live(world: SpoolWorld, ledger: Ledger, options: Partial<SpoolOptions>) {
  world.isPaused = true;
  const first = await world.open(options);
  async function append(count: number, spool = first): Promise<void> {
    const records = world.records(count);
    ledger.given.push(...records);
    await spool.append(records).then(
      () => records.forEach((record) => ledger.acknowledged.add(record)),
      (error) => assert.equal(error.reason, "disk"),
    );
  }
  await append(1);
  await Promise.all([append(2), append(1)]);
  await append(3);
  world.fileSystem.capacityBytes = first.stats().bytes + 200;
  await append(2);
  world.fileSystem.capacityBytes = Infinity;
  let isBroken = true;
  world.fileSystem.fault = (operation) => {
    if (operation !== "sync" || !isBroken) return undefined;
    isBroken = false;
    return "EIO";
  };
  await append(1);
  await append(2);
  world.isPaused = false;
  first.wake();
  await append(2);
  await first.drained();
  await append(1);
  await first.drained();
  world.isPaused = true;
  await append(4);
  await first.close();
  const second = await world.open(options);
  await append(2, second);
  world.isPaused = false;
  second.wake();
  await second.drained();
  await second.close();
}

async function drainAll(world: SpoolWorld, options: Partial<SpoolOptions>): Promise<void> {
  world.isPaused = false;
  const spool = await world.open(options);
  await world.clock.advance(60_000);
  await spool.drained();
  assert.equal(spool.stats().pendingCount, 0);
  await spool.close();
  assert.deepEqual(world.segmentNames(), []);
}

for (const cipher of [undefined, fakeCipher(0x5a)]) {
  const options: Partial<SpoolOptions> = cipher ? { ...OPTIONS, cipher } : OPTIONS;
  const name = cipher ? "a sealed spool" : "a spool";

  Deno.test(`a crash at any operation of ${name} loses and doubles nothing`, async () => {
    const whole = new SpoolWorld();
    const ledger = new Ledger();
    await live(whole, ledger, options);
    ledger.check(whole.sink.stored, "without a crash");
    const operationCount = whole.fileSystem.operationCount;
    assert.ok(operationCount > 100);

    for (let seed = 1; seed <= 6; seed++) {
      for (let at = 1; at <= operationCount; at++) {
        const context = `seed ${seed}, crash at ${at}`;
        const world = new SpoolWorld(seed, { isChoppy: seed % 2 === 0 });
        world.sink.attempt = () => world.prng.chance(0.2) ? "unknown" : "done";
        world.fileSystem.crashAt = at;
        const ledger = new Ledger();
        const life = live(world, ledger, options);
        // A wait for the backoff must not last for ever.
        const end = Promise.race([life, world.fileSystem.crashed]).then(() => "over");
        while (await Promise.race([end, settle()]) !== "over") await world.clock.advance(5000);
        world.restart();
        // The start after the crash crashes as well now and then, somewhere.
        world.fileSystem.crashAt = world.prng.integer(1, 60);
        void world.open(options);
        await world.clock.advance(1000);
        world.restart();
        await drainAll(world, options);
        ledger.check(world.sink.stored, context);
      }
    }
  });
}

for (const operation of ["sync", "syncDirectory"] as const) {
  Deno.test(`the first append is acknowledged only after its ${operation}`, async () => {
    const world = new SpoolWorld();
    world.isPaused = true;
    const spool = await world.open();
    let release = () => {};
    const released = new Promise<void>((resolve) => release = resolve);
    world.fileSystem.gate = (asked) => asked === operation ? released : Promise.resolve();
    let isAcknowledged = false;
    const record = world.record();
    const appended = spool.append([record]).then(() => isAcknowledged = true);
    await settle();
    assert.ok(!isAcknowledged);
    assert.ok(spool.holds(record));
    release();
    await appended;
    await spool.close();
  });
}

Deno.test("what was stored and removed does not come back, though the disk forgets the removal", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const world = new SpoolWorld(seed);
    const spool = await world.open(OPTIONS);
    const records = world.records(20);
    for (const record of records) await spool.append([record]);
    await spool.drained();
    world.restart();
    await drainAll(world, OPTIONS);
    assert.deepEqual(ids(world.sink.stored), ids(records));
  }
});

Deno.test("a directory that was just made outlasts a crash together with the first record", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const world = new SpoolWorld(seed);
    world.isPaused = true;
    // An earlier process made the directories and crashed before it synced them.
    await world.fileSystem.makeDirectory("/data");
    if (seed % 2) await world.fileSystem.makeDirectory("/data/queen-spool");
    const spool = await world.open();
    await spool.append(world.records(1));
    world.restart();
    await drainAll(world, {});
    assert.equal(world.sink.stored.length, 1);
  }
});
