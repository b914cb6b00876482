import assert from "node:assert/strict";
import { ConfigError } from "../mesh/env.ts";
import { Prng } from "../simulation/prng.ts";
import { settle, VirtualClock } from "../simulation/virtual_clock.ts";
import { ConfigCache, type QueueFacts } from "./config_cache.ts";
import { type FlagValues, MaintenanceFlags } from "./maintenance.ts";
import { cacheRefreshFromEnv, Reconciler } from "./reconcile.ts";
import { StoreUnavailableError } from "./store/store.ts";
import { MemoryLogger } from "./testing/memory_logger.ts";

const KEY = { tenant: "00000000-0000-0000-0000-000000000001", queue: "q" };
const INTERVAL_MS = 60_000;

/** A replica's flags and cache, reconciled with a PostgreSQL that is held in memory. */
function bench({ intervalMs = INTERVAL_MS } = {}) {
  const clock = new VirtualClock();
  const logger = new MemoryLogger();
  const random = new Prng(1).random;
  const postgres = {
    isAway: false,
    latencyMs: 0,
    reads: 0,
    flags: {
      maintenance: { enabled: false, version: 0 },
      pop_maintenance: { enabled: false, version: 0 },
    } as FlagValues,
    facts: { leaseSeconds: 60, encryptionEnabled: false } as QueueFacts,
  };
  const flags = new MaintenanceFlags({
    clock,
    random,
    logger,
    read: async () => {
      postgres.reads++;
      await new Promise<void>((resolve) => clock.setTimer(postgres.latencyMs, resolve));
      if (postgres.isAway) throw new StoreUnavailableError("PostgreSQL is away");
      return postgres.flags;
    },
    write: () => Promise.reject(new Error("not asked for")),
    broadcast: () => {},
    onChange: () => {},
  });
  const cache = new ConfigCache({ load: () => Promise.resolve(postgres.facts) });
  const reconciler = new Reconciler({
    clock,
    random,
    intervalMs,
    refreshFlags: () => flags.refresh(),
    dropCaches: () => cache.dropAll(),
  });
  return { clock, logger, postgres, flags, cache, reconciler };
}

Deno.test("the interval of reconciling is read from the environment", () => {
  assert.equal(cacheRefreshFromEnv({}), 60_000);
  assert.equal(cacheRefreshFromEnv({ QUEEN_CACHE_REFRESH_INTERVAL_MS: "1" }), 1);
  assert.throws(
    () => cacheRefreshFromEnv({ QUEEN_CACHE_REFRESH_INTERVAL_MS: "0" }),
    (error) =>
      error instanceof ConfigError && /QUEEN_CACHE_REFRESH_INTERVAL_MS/.test(error.message),
  );
});

Deno.test("the flags are read at the start", async () => {
  const { clock, postgres, flags, reconciler } = bench();
  postgres.flags = { ...postgres.flags, maintenance: { enabled: true, version: 4 } };
  reconciler.start();
  reconciler.start();
  await clock.advance(0);
  assert.equal(flags.modes.maintenance, true);
  assert.equal(postgres.reads, 1);
  await reconciler.close();
});

Deno.test("a flip whose frame was lost is healed within the interval", async () => {
  const { clock, postgres, flags, reconciler } = bench();
  reconciler.start();
  await clock.advance(1000);
  postgres.flags = { ...postgres.flags, pop_maintenance: { enabled: true, version: 1 } };
  await clock.advance(INTERVAL_MS - 1001);
  assert.equal(flags.modes.popMaintenance, false);
  await clock.advance(1);
  assert.equal(flags.modes.popMaintenance, true);
  await reconciler.close();
});

Deno.test("a configuration whose frame was lost is healed within the interval", async () => {
  const { clock, postgres, cache, reconciler } = bench();
  reconciler.start();
  await clock.advance(1000);
  await cache.get(KEY);
  postgres.facts = { leaseSeconds: 5, encryptionEnabled: true };
  await clock.advance(INTERVAL_MS - 1001);
  assert.equal((await cache.get(KEY))?.leaseSeconds, 60);
  await clock.advance(1);
  assert.deepEqual(await cache.get(KEY), postgres.facts);
  await reconciler.close();
});

Deno.test("it reconciles once in each interval, however long a read takes", async () => {
  const { clock, postgres, reconciler } = bench({ intervalMs: 1000 });
  postgres.latencyMs = 300;
  reconciler.start();
  await clock.advance(9999);
  assert.equal(postgres.reads, 10);
  postgres.latencyMs = 5000;
  await clock.advance(20_000);
  // One at a time.
  assert.equal(postgres.reads, 14);
  const closing = reconciler.close();
  await clock.advance(5000);
  await closing;
});

Deno.test("while PostgreSQL is away nothing changes, and it is tried again soon", async () => {
  const { clock, postgres, flags, cache, reconciler } = bench();
  postgres.flags = { ...postgres.flags, maintenance: { enabled: true, version: 1 } };
  reconciler.start();
  await clock.advance(0);
  await cache.get(KEY);
  postgres.isAway = true;
  await clock.advance(INTERVAL_MS);
  postgres.flags = { ...postgres.flags, maintenance: { enabled: false, version: 2 } };
  const { reads } = postgres;
  await clock.advance(60_000);
  assert(postgres.reads - reads >= 12 && postgres.reads - reads < 25, `${postgres.reads} reads`);
  assert.equal(flags.modes.maintenance, true);
  assert.deepEqual(cache.peek(KEY), postgres.facts);
  postgres.isAway = false;
  await clock.advance(5000);
  assert.equal(flags.modes.maintenance, false);
  assert.equal(cache.peek(KEY), undefined);
  // And then at the interval again.
  const after = postgres.reads;
  await clock.advance(INTERVAL_MS - 1);
  assert(postgres.reads - after <= 1, `${postgres.reads - after} reads`);
  await reconciler.close();
});

Deno.test("the next time that PostgreSQL goes away the backoff starts over", async () => {
  const { clock, postgres, reconciler } = bench();
  reconciler.start();
  postgres.isAway = true;
  await clock.advance(60_000);
  postgres.isAway = false;
  await clock.advance(5000);
  postgres.isAway = true;
  const { reads } = postgres;
  await clock.runUntil(clock.now() + INTERVAL_MS, () => postgres.reads > reads);
  await clock.advance(250);
  assert.equal(postgres.reads, reads + 2);
  await reconciler.close();
});

Deno.test("a start during the first read begins no other", async () => {
  const { clock, postgres, reconciler } = bench();
  postgres.latencyMs = 10;
  reconciler.start();
  await clock.advance(5);
  reconciler.start();
  await clock.advance(100);
  assert.equal(postgres.reads, 1);
  await reconciler.close();
});

Deno.test("a short interval is not made longer by the backoff", async () => {
  const { clock, postgres, reconciler } = bench({ intervalMs: 100 });
  postgres.isAway = true;
  reconciler.start();
  await clock.advance(10_000);
  assert(postgres.reads >= 100, `${postgres.reads} reads`);
  await reconciler.close();
});

Deno.test("closing leaves no timer and waits for a read under way", async () => {
  const { clock, postgres, cache, flags, reconciler } = bench();
  reconciler.start();
  await clock.advance(0);
  await reconciler.close();
  assert.equal(clock.pending, 0);
  reconciler.start();
  await settle();
  assert.equal(postgres.reads, 1);

  const other = bench();
  other.postgres.latencyMs = 100;
  other.reconciler.start();
  await other.clock.advance(50);
  let isClosed = false;
  const closing = other.reconciler.close().then(() => isClosed = true);
  await settle();
  assert.equal(isClosed, false);
  await other.clock.advance(50);
  await closing;
  assert.equal(other.clock.pending, 0);
  await Promise.all([flags.close(), other.flags.close()]);
  assert.equal(cache.size, 0);
});
