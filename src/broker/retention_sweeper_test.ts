import assert from "node:assert/strict";
import { VirtualClock } from "../simulation/virtual_clock.ts";
import { retentionIntervalFromEnv, RetentionSweeper } from "./retention_sweeper.ts";
import { StoreUnavailableError, type SweepPosition, type SweepStep } from "./store/store.ts";
import { MemoryLogger } from "./testing/memory_logger.ts";

const END: SweepStep = { isBusy: false, removed: 0, next: undefined };

/** A sweeper that is started, and the positions that it asked for. */
function start(sweep: (position: SweepPosition | undefined) => Promise<SweepStep>) {
  const clock = new VirtualClock();
  const logger = new MemoryLogger();
  const asked: (SweepPosition | undefined)[] = [];
  const store = {
    sweep(position: SweepPosition | undefined) {
      asked.push(position);
      return sweep(position);
    },
  };
  const sweeper = new RetentionSweeper({ store, clock, intervalMs: 1000, logger });
  sweeper.start();
  return { clock, logger, asked, sweeper };
}

Deno.test("a replica sweeps once in every interval", async () => {
  const { clock, asked, sweeper } = start(() => Promise.resolve(END));
  await clock.advance(999);
  assert.equal(asked.length, 0);
  await clock.advance(1);
  assert.equal(asked.length, 1);
  await clock.advance(2000);
  assert.equal(asked.length, 3);
  await sweeper.close();
  assert.equal(clock.pending, 0);
});

Deno.test("a sweep goes on from step to step, and says what it removed", async () => {
  const next = { queueId: "q", partition: "p" };
  const { clock, logger, asked, sweeper } = start((position) =>
    Promise.resolve(position === undefined ? { isBusy: false, removed: 2, next } : END)
  );
  await clock.advance(1000);
  assert.deepEqual(asked, [undefined, next]);
  assert.deepEqual(logger.entries.map(({ level }) => level), ["info"]);
  await sweeper.close();
});

Deno.test("a sweep that fails is tried again after the interval", async () => {
  const errors = [new StoreUnavailableError("away"), new Error("a fault")];
  const { clock, logger, asked, sweeper } = start(() => {
    const error = errors.shift();
    return error === undefined ? Promise.resolve(END) : Promise.reject(error);
  });
  await clock.advance(3000);
  assert.equal(asked.length, 3);
  assert.deepEqual(logger.entries.map(({ level }) => level), ["info", "error"]);
  await sweeper.close();
});

Deno.test("a sweeper that closes ends with the step under way and leaves no timer", async () => {
  let finish: (step: SweepStep) => void = () => {};
  const { clock, asked, sweeper } = start(() =>
    new Promise((resolve) => {
      finish = resolve;
    })
  );
  await clock.advance(1000);
  let isClosed = false;
  const closing = sweeper.close().then(() => {
    isClosed = true;
  });
  await clock.advance(10);
  assert.equal(isClosed, false);
  finish({ isBusy: false, removed: 0, next: { queueId: "q" } });
  await closing;
  assert.equal(asked.length, 1);
  assert.equal(clock.pending, 0);
  sweeper.start();
  assert.equal(clock.pending, 0);
});

Deno.test("the interval comes from the environment, once a minute where it says nothing", () => {
  assert.equal(retentionIntervalFromEnv({}), 60_000);
  assert.equal(retentionIntervalFromEnv({ QUEEN_RETENTION_INTERVAL_MS: "5" }), 5);
  for (const text of ["0", "-1", "soon"]) {
    assert.throws(() => retentionIntervalFromEnv({ QUEEN_RETENTION_INTERVAL_MS: text }), {
      name: "ConfigError",
    });
  }
});
