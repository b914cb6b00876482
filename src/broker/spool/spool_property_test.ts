import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import { fakeCipher } from "./testing/fake_cipher.ts";
import { DIRECTORY, SpoolWorld } from "./testing/spool_world.ts";
import { SpoolUnavailableError } from "./errors.ts";
import type { Attempt } from "./testing/memory_sink.ts";
import type { Spool } from "./spool.ts";
import type { SpoolOptions } from "./spool_options.ts";
import { readFrame } from "./frame.ts";
import { decodeRecord, type SpoolRecord } from "./spool_record.ts";

const SEED_COUNT = 300;
const PARTITION_COUNT = 4;
const MESSAGE_COUNT = 25;

/** The key of {@linkcode CIPHER}, which is the last byte of what it seals. */
const SEAL = 7;
const CIPHER = fakeCipher(SEAL);

/** Producers that push to a replica which crashes, through a spool whose disk and sink fail. */
class Chaos {
  readonly #world: SpoolWorld;
  readonly #options: Partial<SpoolOptions>;
  /** By partition, in the order in which its producer pushed. */
  readonly given = new Map<string, SpoolRecord[]>();
  /** What was answered as stored or buffered. */
  readonly acknowledged = new Set<SpoolRecord>();
  readonly routes = { store: 0, spool: 0, refused: 0, lost: 0 };
  #spool: Promise<Spool>;
  #isCalm = false;
  longestWaitMs = 0;

  constructor(world: SpoolWorld) {
    const { prng } = world;
    this.#world = world;
    this.#options = {
      segmentBytesMax: prng.pick([200, 1000, 100_000]),
      batchRecordsMax: prng.pick([1, 2, 5, 100]),
      bytesMax: prng.pick([4000, 1_000_000]),
      ...(prng.chance(0.3) ? { cipher: CIPHER } : {}),
    };
    const attempts: Attempt[] = ["fails", "unknown", "late"];
    let isAway = false;
    world.sink.attempt = () => {
      if (this.#isCalm) return "done";
      if (prng.chance(0.03)) isAway = !isAway;
      return prng.chance(isAway ? 0.9 : 0.1) ? prng.pick(attempts) : "done";
    };
    world.sink.gate = () => this.#delay(prng.pick([0, 0, 5, 50, 1500]));
    world.sink.isRefused = ({ payload }) => payload === '"poison"';
    this.#arm();
    this.#spool = this.#open();
  }

  /** Lets everything happen, then heals all, and drains. */
  async run(): Promise<Spool> {
    const { clock, prng } = this.#world;
    const isOver = { value: false };
    const producers = Array.from({ length: PARTITION_COUNT }, (_, i) => this.#produce(`p${i}`));
    void Promise.all(producers).then(() => isOver.value = true);
    for (let step = 0; !isOver.value; step++) {
      assert.ok(step < 20_000, "the producers never end");
      await clock.advance(prng.integer(1, 200));
      if (prng.chance(0.02)) await this.#flip();
      if (this.#world.fileSystem.isCrashed || prng.chance(0.01)) await this.#restart();
    }
    this.#isCalm = true;
    this.#world.isPaused = false;
    await this.#restart();
    await clock.advance(60_000);
    const spool = await this.#spool;
    await spool.drained();
    return spool;
  }

  async #flip(): Promise<void> {
    this.#world.isPaused = !this.#world.isPaused;
    // Somebody may forget to say so.
    if (this.#world.prng.chance(0.7)) {
      await Promise.race([this.#spool.then((spool) => spool.wake(), () => {}), settle()]);
    }
  }

  async #restart(): Promise<void> {
    this.#world.restart();
    this.#arm();
    this.#spool = this.#open();
    await settle();
  }

  #open(): Promise<Spool> {
    const opening = this.#world.open(this.#options);
    // Where it fails, the next producer notices.
    opening.catch(() => {});
    return opening;
  }

  #arm(): void {
    const { fileSystem, prng } = this.#world;
    if (this.#isCalm) return;
    if (prng.chance(0.5)) fileSystem.crashAt = prng.integer(1, 400);
    const isFlaky = prng.chance(0.5);
    fileSystem.fault = (operation) =>
      isFlaky && ["write", "sync", "truncate", "syncDirectory", "create"].includes(operation) &&
        prng.chance(0.03)
        ? prng.pick(["EIO", "ENOSPC"])
        : undefined;
  }

  /** Pushes one message after the other, each after the answer to the one before. */
  async #produce(partition: string): Promise<void> {
    const { prng } = this.#world;
    const given: SpoolRecord[] = [];
    this.given.set(partition, given);
    for (let n = 0; n < MESSAGE_COUNT; n++) {
      const isPoison = prng.chance(0.03);
      const record = this.#world.record({
        partition,
        payload: isPoison ? '"poison"' : `"${"x".repeat(prng.integer(0, 100))}"`,
      });
      given.push(record);
      const { fileSystem } = this.#world;
      // A replica that crashes answers nothing.
      const answer = await Promise.race([this.#push(record), fileSystem.crashed]);
      if (answer === undefined) this.routes.lost++;
      else if (answer !== "refused") this.acknowledged.add(record);
      await this.#delay(prng.pick([0, 0, 1, 20, 300]));
    }
  }

  async #push(record: SpoolRecord): Promise<"done" | "refused"> {
    const { clock, sink, fileSystem } = this.#world;
    const opening = this.#spool;
    let spool: Spool;
    try {
      spool = await opening;
    } catch {
      // The file system failed at the start; the next start may do better.
      if (this.#spool === opening) this.#spool = this.#open();
      return "refused";
    }
    try {
      const before = clock.now();
      const route = await spool.admit([record]);
      this.longestWaitMs = Math.max(this.longestWaitMs, clock.now() - before);
      if (route === "store" && record.payload !== '"poison"') {
        try {
          await sink.push(record);
          this.routes.store++;
          return "done";
        } catch {
          if (fileSystem.isCrashed) return "refused";
        }
      }
      await this.#delay(this.#world.prng.pick([0, 0, 0, 3, 700]));
      await spool.append([record]);
      this.routes.spool++;
      return "done";
    } catch (error) {
      assert.ok(error instanceof SpoolUnavailableError, String(error));
      this.routes.refused++;
      return "refused";
    }
  }

  #delay(ms: number): Promise<void> {
    if (ms === 0) return Promise.resolve();
    return new Promise((resolve) => void this.#world.clock.setTimer(ms, resolve));
  }
}

/** The ids of the records in the failed folder, each of which must be whole. */
async function keptIds(world: SpoolWorld): Promise<string[]> {
  const { fileSystem } = world;
  const isThere = fileSystem.namesIn(DIRECTORY).includes("failed");
  const names = isThere ? fileSystem.namesIn(`${DIRECTORY}/failed`) : [];
  const records = names.filter((name) => name.endsWith(".record")).map(async (name) => {
    const frame = readFrame(fileSystem.contentOf(`${DIRECTORY}/failed/${name}`));
    assert.ok(frame, `${name} is damaged`);
    const { body, acceptedAt } = frame;
    const plain = body.at(-1) === SEAL ? await CIPHER.open(body) : body;
    return decodeRecord(plain, acceptedAt).messageId;
  });
  return await Promise.all(records);
}

Deno.test("whatever fails, each partition keeps its order, and nothing is lost or doubled", async () => {
  const routes = { store: 0, spool: 0, refused: 0, lost: 0 };
  for (let seed = 1; seed <= SEED_COUNT; seed++) {
    const world = new SpoolWorld(seed, { isChoppy: seed % 3 === 0 });
    const chaos = new Chaos(world);
    const spool = await chaos.run();
    const context = `seed ${seed}`;
    for (const route of ["store", "spool", "refused", "lost"] as const) {
      routes[route] += chaos.routes[route];
    }
    const isPoison = ({ payload }: SpoolRecord) => payload === '"poison"';
    for (const [partition, given] of chaos.given) {
      const stored = world.sink.stored.filter((record) => record.partition === partition)
        .map((record) => record.messageId);
      assert.equal(new Set(stored).size, stored.length, `${context}: stored twice`);
      // What was never answered may be stored at any time, and what is at fault is set aside.
      const promised = given.filter((record) => chaos.acknowledged.has(record) && !isPoison(record))
        .map((record) => record.messageId);
      assert.deepEqual(stored.filter((id) => promised.includes(id)), promised, context);
    }
    const { failedCount, pendingCount } = spool.stats();
    const kept = await keptIds(world);
    assert.equal(failedCount, kept.length);
    const poison = [...chaos.acknowledged].filter(isPoison).map((record) => record.messageId);
    assert.deepEqual(poison.filter((id) => !kept.includes(id)), [], `${context}: not kept`);
    assert.equal(pendingCount, 0, context);
    assert.deepEqual(world.segmentNames(), [], context);
    assert.ok(chaos.longestWaitMs <= 1000, `${context}: waited ${chaos.longestWaitMs} ms`);
    await spool.close();
    assert.equal(world.fileSystem.openCount, 0, context);
  }
  // All of it happened, or the test would prove little.
  for (const [route, count] of Object.entries(routes)) {
    assert.ok(count > SEED_COUNT, `only ${count} pushes of ${route}`);
  }
});
