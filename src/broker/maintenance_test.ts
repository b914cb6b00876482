import assert from "node:assert/strict";
import fc from "fast-check";
import type { OutgoingMessage } from "../protocol/messages.ts";
import { Prng } from "../simulation/prng.ts";
import { settle, VirtualClock } from "../simulation/virtual_clock.ts";
import {
  type FlagMessage,
  type FlagName,
  type FlagValue,
  type FlagValues,
  MaintenanceFlags,
} from "./maintenance.ts";
import { StoreUnavailableError } from "./store/store.ts";
import { MemoryLogger } from "./testing/memory_logger.ts";

const AWAY = new StoreUnavailableError("PostgreSQL is away");

/** The table of flags in PostgreSQL. */
class FlagTable {
  isAway = false;
  values: Record<FlagName, FlagValue> = {
    maintenance: { enabled: false, version: 0 },
    pop_maintenance: { enabled: false, version: 0 },
  };

  read(): FlagValues {
    if (this.isAway) throw AWAY;
    return { ...this.values };
  }

  write(name: FlagName, enabled: boolean): FlagValue {
    if (this.isAway) throw AWAY;
    return this.values[name] = { enabled, version: this.values[name].version + 1 };
  }
}

/** One replica's flags; their reads take `latencyMs`, and see the table as it is at their end. */
function replica(
  { clock = new VirtualClock(), table = new FlagTable(), latencyMs = 10 }: {
    clock?: VirtualClock;
    table?: FlagTable;
    latencyMs?: number;
  } = {},
) {
  const logger = new MemoryLogger();
  const told: OutgoingMessage[] = [];
  const changes: string[] = [];
  const counts = { reads: 0, readsAtOnce: 0, readsAtOnceMax: 0 };
  const pass = () => new Promise<void>((resolve) => clock.setTimer(latencyMs, resolve));
  const flags = new MaintenanceFlags({
    clock,
    random: new Prng(1).random,
    logger,
    read: async () => {
      counts.reads++;
      counts.readsAtOnceMax = Math.max(counts.readsAtOnceMax, ++counts.readsAtOnce);
      await pass();
      counts.readsAtOnce--;
      return table.read();
    },
    write: async (name, enabled) => {
      await pass();
      return table.write(name, enabled);
    },
    broadcast: (message) => told.push(message),
    onChange: (name, enabled) => changes.push(`${name} ${enabled ? "on" : "off"}`),
  });
  /** Reads, and lets time pass until that is done. */
  const refresh = () => Promise.all([flags.refresh(), clock.advance(latencyMs)]);
  const hear = (enabled: boolean, type: FlagMessage["type"] = "maintenance_mode") =>
    flags.hear({ type, enabled });
  return { clock, table, logger, told, changes, counts, flags, refresh, hear };
}

Deno.test("before PostgreSQL has said anything the modes are off and not known", async () => {
  const { flags, changes, refresh } = replica();
  assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: false });
  assert.equal(flags.isKnown("maintenance"), false);
  await refresh();
  assert.equal(flags.isKnown("maintenance"), true);
  assert.equal(flags.isKnown("pop_maintenance"), true);
  // Whoever waits for maintenance to end learns that there is none.
  assert.deepEqual(changes, ["maintenance off", "pop_maintenance off"]);
  await refresh();
  assert.equal(changes.length, 2);
});

Deno.test("a refresh applies what is in PostgreSQL", async () => {
  const { flags, table, changes, refresh } = replica();
  table.write("pop_maintenance", true);
  await refresh();
  assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: true });
  table.write("maintenance", true);
  table.write("pop_maintenance", false);
  await refresh();
  assert.deepEqual(flags.modes, { maintenance: true, popMaintenance: false });
  assert.deepEqual(changes.slice(2), ["maintenance on", "pop_maintenance off"]);
});

Deno.test("a local flip is written, then applied, then told", async () => {
  const { flags, clock, table, told, changes, counts } = replica();
  const flipped = flags.set("maintenance", true);
  await clock.advance(9);
  assert.equal(flags.modes.maintenance, false);
  assert.deepEqual(told, []);
  await clock.advance(1);
  await flipped;
  assert.deepEqual(table.values.maintenance, { enabled: true, version: 1 });
  assert.equal(flags.modes.maintenance, true);
  assert.deepEqual(changes, ["maintenance on"]);
  assert.deepEqual(told, [{ type: "maintenance_mode", enabled: true }]);
  const other = flags.set("pop_maintenance", true);
  await clock.advance(10);
  await other;
  assert.deepEqual(told.slice(1), [{ type: "pop_maintenance_mode", enabled: true }]);
  assert.equal(counts.reads, 0);
});

Deno.test("a flip that PostgreSQL does not take is refused, applied nowhere and not told", async () => {
  const { flags, clock, table, told, changes } = replica();
  table.isAway = true;
  const flipped = assert.rejects(flags.set("maintenance", true), AWAY);
  await clock.advance(10);
  await flipped;
  assert.equal(flags.modes.maintenance, false);
  assert.deepEqual([told, changes], [[], []]);
  assert.equal(clock.pending, 0);
});

Deno.test("a flip that was overtaken by a newer one changes nothing here", async () => {
  const { clock, table, flags, refresh } = replica();
  const flipped = flags.set("maintenance", true);
  await clock.advance(10);
  await flipped;
  const newer = table.write("maintenance", false);
  await refresh();
  assert.equal(flags.modes.maintenance, false);
  // A slow answer that names an older version comes last.
  table.values.maintenance = { enabled: true, version: newer.version - 1 };
  await refresh();
  assert.equal(flags.modes.maintenance, false);
});

Deno.test("a flip that a peer tells is applied once PostgreSQL confirms it", async () => {
  const { flags, clock, table, hear, told } = replica();
  table.write("maintenance", true);
  hear(true);
  assert.equal(flags.modes.maintenance, false);
  await clock.advance(10);
  assert.equal(flags.modes.maintenance, true);
  table.write("pop_maintenance", true);
  hear(true, "pop_maintenance_mode");
  await clock.advance(10);
  assert.equal(flags.modes.popMaintenance, true);
  // What was heard is never told on.
  assert.deepEqual(told, []);
  assert.equal(clock.pending, 0);
});

Deno.test("forged frames change nothing and cost one read at a time", async () => {
  const { flags, clock, counts, changes, hear, refresh } = replica();
  await refresh();
  for (let ms = 0; ms < 1000; ms++) {
    for (let i = 0; i < 100; i++) {
      hear(i % 3 > 0, i % 2 > 0 ? "maintenance_mode" : "pop_maintenance_mode");
    }
    await clock.advance(1);
    assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: false });
  }
  assert.equal(counts.readsAtOnceMax, 1);
  // The last one is for what came during the one before it.
  assert.equal(counts.reads, 1 + 1000 / 10 + 1);
  await clock.advance(100);
  assert.equal(changes.length, 2);
  assert.equal(clock.pending, 0);
});

Deno.test("frames that arrive during a read cause exactly one more", async () => {
  const { clock, counts, hear } = replica();
  hear(true);
  await clock.advance(1);
  for (let i = 0; i < 1000; i++) hear(true);
  await clock.advance(100);
  assert.equal(counts.reads, 2);
});

Deno.test("a flip that is written during a read is seen by the one more", async () => {
  const { clock, flags, hear, table } = replica();
  // This read sees the table as it was when it began.
  const before = table.read();
  const reads = [before, undefined];
  table.read = () => reads.shift() ?? { ...table.values };
  hear(true);
  await clock.advance(1);
  table.write("maintenance", true);
  hear(true);
  await clock.advance(9);
  assert.equal(flags.modes.maintenance, false);
  await clock.advance(10);
  assert.equal(flags.modes.maintenance, true);
});

Deno.test("while PostgreSQL is away a peer's word counts, until the first answer", async () => {
  const { flags, clock, table, changes, hear, refresh, logger } = replica();
  await refresh();
  table.isAway = true;
  hear(true);
  assert.equal(flags.modes.maintenance, false);
  await clock.advance(10);
  assert.deepEqual(flags.modes, { maintenance: true, popMaintenance: false });
  hear(true, "pop_maintenance_mode");
  await clock.advance(10);
  assert.deepEqual(flags.modes, { maintenance: true, popMaintenance: true });
  hear(false);
  await clock.advance(10);
  assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: true });
  await clock.advance(60_000);
  assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: true });
  // PostgreSQL never heard of any of it.
  table.isAway = false;
  await clock.advance(5010);
  assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: false });
  assert.deepEqual(changes.slice(2), [
    "maintenance on",
    "pop_maintenance on",
    "maintenance off",
    "pop_maintenance off",
  ]);
  assert.equal(clock.pending, 0);
  assert.deepEqual(logger.entries.map(({ level }) => level), [
    "info",
    "info",
    "warn",
    "warn",
    "warn",
    "info",
  ]);
});

Deno.test("a peer's word that came during a read counts where the next one fails", async () => {
  const { flags, clock, table, hear } = replica();
  hear(false);
  await clock.advance(1);
  hear(true);
  await clock.advance(9);
  assert.deepEqual([flags.modes.maintenance, flags.isKnown("maintenance")], [false, true]);
  table.isAway = true;
  await clock.advance(10);
  assert.equal(flags.modes.maintenance, true);
  await flags.close();
});

Deno.test("a peer's word never outlives an answer, whatever its version", async () => {
  for (const version of [3, 5, 9]) {
    const { flags, clock, table, hear, refresh } = replica();
    table.values.maintenance = { enabled: false, version: 5 };
    await refresh();
    table.isAway = true;
    hear(true);
    await clock.advance(10);
    assert.equal(flags.modes.maintenance, true);
    table.isAway = false;
    table.values.maintenance = { enabled: false, version };
    await clock.advance(5010);
    assert.equal(flags.modes.maintenance, false);
  }
});

Deno.test("PostgreSQL is asked again by a backoff, and at once where it has answered", async () => {
  const { flags, clock, table, counts, hear } = replica();
  flags.postgresAnswered();
  await clock.advance(10);
  assert.equal(counts.reads, 0);
  table.isAway = true;
  hear(true);
  await clock.advance(60_000);
  assert(counts.reads >= 60_000 / 5100 && counts.reads < 25, `${counts.reads} reads`);
  table.isAway = false;
  table.write("pop_maintenance", true);
  const { reads } = counts;
  // A read that is under way already is not doubled.
  await clock.runUntil(clock.now() + 5000, () => counts.readsAtOnce === 0);
  flags.postgresAnswered();
  flags.postgresAnswered();
  await settle();
  flags.postgresAnswered();
  await clock.advance(10);
  assert.equal(counts.reads, reads + 1);
  assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: true });
  flags.postgresAnswered();
  await clock.advance(10_000);
  assert.equal(counts.reads, reads + 1);
});

Deno.test("each time that PostgreSQL goes away, it is reported and the backoff starts over", async () => {
  const { clock, table, counts, hear, logger } = replica();
  for (let outage = 1; outage <= 3; outage++) {
    table.isAway = true;
    hear(true);
    await clock.advance(60_000);
    table.isAway = false;
    await clock.advance(5010);
    const failures = logger.entries.filter(({ fields }) => fields["error"] === AWAY);
    assert.equal(failures.length, outage);
  }
  const { reads } = counts;
  table.isAway = true;
  hear(true);
  await clock.advance(260 + 10);
  assert.equal(counts.reads, reads + 2);
  table.isAway = false;
  await clock.advance(1000);
  assert.equal(clock.pending, 0);
});

Deno.test("what a peer said once is forgotten once PostgreSQL has answered", async () => {
  const { flags, clock, table, hear, refresh } = replica();
  hear(true);
  await clock.advance(10);
  table.isAway = true;
  await assert.rejects(refresh(), AWAY);
  hear(true, "pop_maintenance_mode");
  await clock.advance(10);
  assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: true });
  await flags.close();
});

Deno.test("a local flip is an answer too: it ends what a peer had said of that flag", async () => {
  const { flags, clock, table, hear } = replica();
  table.isAway = true;
  hear(true);
  hear(true, "pop_maintenance_mode");
  await clock.advance(10);
  table.isAway = false;
  const flipped = flags.set("maintenance", false);
  await clock.advance(10);
  await flipped;
  assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: true });
  // And PostgreSQL being back, it is asked about the other one.
  await clock.advance(10);
  assert.deepEqual(flags.modes, { maintenance: false, popMaintenance: false });
});

Deno.test("what a peer said before an answer does not count when the read fails later", async () => {
  const { flags, clock, table, hear } = replica();
  hear(true);
  const flipped = flags.set("maintenance", false);
  // The write ends before the read, after which PostgreSQL goes away.
  const { write } = table;
  table.write = (name, enabled) => {
    const value = write.call(table, name, enabled);
    table.isAway = true;
    return value;
  };
  table.read = () => {
    throw AWAY;
  };
  await clock.advance(10);
  await flipped;
  assert.equal(flags.modes.maintenance, false);
});

Deno.test("an error that PostgreSQL answers with makes no peer's word count", async () => {
  const { flags, clock, table, hear, logger } = replica();
  const { read } = table;
  const error = new Error("relation flag does not exist");
  table.read = () => {
    throw error;
  };
  hear(true);
  await clock.advance(10_000);
  assert.equal(flags.modes.maintenance, false);
  assert.deepEqual(logger.entries.map(({ fields }) => fields["error"]), [error]);
  // It is asked again all the same.
  table.read = read;
  table.write("maintenance", true);
  await clock.advance(5010);
  assert.equal(flags.modes.maintenance, true);
});

Deno.test("a refresh that fails changes nothing, and leaves trying again to its caller", async () => {
  const { flags, clock, table, refresh, changes } = replica();
  table.write("maintenance", true);
  await refresh();
  table.isAway = true;
  await assert.rejects(refresh(), AWAY);
  assert.deepEqual(flags.modes, { maintenance: true, popMaintenance: false });
  assert.equal(changes.length, 2);
  assert.equal(clock.pending, 0);
});

Deno.test("a refresh during a flood of frames ends with the next read", async () => {
  const { flags, clock, hear } = replica();
  let isRefreshed = false;
  for (let ms = 0; ms < 25; ms++) {
    if (ms === 1) flags.refresh().then(() => isRefreshed = true);
    hear(true);
    await clock.advance(1);
    assert.equal(isRefreshed, ms >= 19);
  }
});

Deno.test("a listener that fails is reported and stops nothing", async () => {
  const clock = new VirtualClock();
  const logger = new MemoryLogger();
  const error = new Error("a fault of the listener");
  const table = new FlagTable();
  const flags = new MaintenanceFlags({
    clock,
    random: new Prng(1).random,
    logger,
    read: () => Promise.resolve(table.read()),
    write: (name, enabled) => Promise.resolve(table.write(name, enabled)),
    broadcast: () => {},
    onChange: () => {
      throw error;
    },
  });
  table.write("pop_maintenance", true);
  await flags.refresh();
  await flags.set("maintenance", true);
  assert.deepEqual(flags.modes, { maintenance: true, popMaintenance: true });
  const errors = logger.entries.filter(({ level }) => level === "error");
  assert.deepEqual(errors.map(({ fields }) => fields["error"]), [error, error, error]);
});

Deno.test("once closed, nothing is asked, applied or told, and no timer is left", async () => {
  const { flags, clock, table, told, counts, changes, hear } = replica();
  table.isAway = true;
  hear(true);
  await clock.advance(10);
  assert.equal(clock.pending, 1);
  await flags.close();
  assert.equal(clock.pending, 0);
  table.isAway = false;
  hear(false);
  flags.postgresAnswered();
  await assert.rejects(flags.refresh(), /closing/);
  const flipped = flags.set("maintenance", false);
  await clock.advance(10_000);
  await flipped;
  assert.equal(counts.reads, 1);
  assert.deepEqual(changes, ["maintenance on"]);
  assert.deepEqual(told, []);
});

Deno.test("closing waits for the read under way, and applies nothing of it", async () => {
  const { flags, clock, table, changes, hear } = replica();
  table.write("maintenance", true);
  hear(true);
  await clock.advance(1);
  let isClosed = false;
  const closing = flags.close().then(() => isClosed = true);
  await clock.advance(8);
  assert.equal(isClosed, false);
  await clock.advance(1);
  await closing;
  assert.deepEqual(changes, []);
  assert.equal(clock.pending, 0);
});

Deno.test("opposite flips on several replicas end the same on all, however they interleave", async () => {
  const flip = fc.record({
    at: fc.nat(2),
    name: fc.constantFrom<FlagName>("maintenance", "pop_maintenance"),
    enabled: fc.boolean(),
  });
  await fc.assert(fc.asyncProperty(
    fc.scheduler(),
    fc.array(flip, { minLength: 1, maxLength: 6 }),
    async (scheduler, flips) => {
      const table = new FlagTable();
      const clock = new VirtualClock();
      const replicas: MaintenanceFlags[] = [0, 1, 2].map((self) =>
        new MaintenanceFlags({
          clock,
          random: new Prng(self).random,
          logger: new MemoryLogger(),
          // A read or write takes place at one moment, and its answer arrives at a later one.
          read: async () => {
            await scheduler.schedule(Promise.resolve(), "a read takes place");
            return await scheduler.schedule(Promise.resolve(table.read()), "a read is answered");
          },
          write: async (name, enabled) => {
            await scheduler.schedule(Promise.resolve(), "a write takes place");
            const value = table.write(name, enabled);
            return await scheduler.schedule(Promise.resolve(value), "a write is answered");
          },
          broadcast: (message) => {
            assert("enabled" in message);
            replicas.forEach((peer, index) => {
              if (index === self) return;
              void scheduler.schedule(Promise.resolve(), "a frame").then(() => peer.hear(message));
            });
          },
          onChange: () => {},
        })
      );
      for (const { at, name, enabled } of flips) {
        void scheduler.schedule(Promise.resolve(), "a flip").then(() =>
          replicas[at]!.set(name, enabled)
        );
      }
      await scheduler.waitIdle();
      const { maintenance, pop_maintenance } = table.values;
      for (const { modes } of replicas) {
        // A flag that nobody flipped is off here whether it was read or not.
        assert.deepEqual(modes, {
          maintenance: maintenance.enabled,
          popMaintenance: pop_maintenance.enabled,
        });
      }
      assert.equal(clock.pending, 0);
    },
  ));
});

Deno.test("once PostgreSQL is back for good all replicas have what it has", async () => {
  const event = fc.record({
    kind: fc.constantFrom("flip", "forge", "away", "back", "answer"),
    at: fc.nat(2),
    name: fc.constantFrom<FlagName>("maintenance", "pop_maintenance"),
    enabled: fc.boolean(),
    ms: fc.nat(300),
  });
  await fc.assert(fc.asyncProperty(
    fc.array(event, { maxLength: 30 }),
    fc.integer(),
    async (events, seed) => {
      const clock = new VirtualClock();
      const prng = new Prng(seed);
      const table = new FlagTable();
      /** Which replicas cannot reach PostgreSQL. */
      const away = new Set<number>();
      const ask = async <T>(self: number, act: () => T): Promise<T> => {
        await new Promise<void>((resolve) => clock.setTimer(prng.integer(0, 50), resolve));
        if (away.has(self)) throw AWAY;
        const answer = act();
        await new Promise<void>((resolve) => clock.setTimer(prng.integer(0, 50), resolve));
        return answer;
      };
      const replicas: MaintenanceFlags[] = [0, 1, 2].map((self) =>
        new MaintenanceFlags({
          clock,
          random: prng.random,
          logger: new MemoryLogger(),
          read: () => ask(self, () => table.read()),
          write: (name, enabled) => ask(self, () => table.write(name, enabled)),
          broadcast: (message) => {
            assert("enabled" in message);
            replicas.forEach((peer, index) => {
              if (index === self) return;
              clock.setTimer(prng.integer(0, 100), () => peer.hear(message));
            });
          },
          onChange: () => {},
        })
      );
      for (const { kind, at, name, enabled, ms } of events) {
        const flags = replicas[at]!;
        const type = name === "maintenance" ? "maintenance_mode" : "pop_maintenance_mode";
        if (kind === "flip") flags.set(name, enabled).catch((error) => assert.equal(error, AWAY));
        if (kind === "forge") flags.hear({ type, enabled });
        if (kind === "away") away.add(at);
        if (kind === "back") away.delete(at);
        if (kind === "answer") flags.postgresAnswered();
        await clock.advance(ms);
      }
      away.clear();
      // Longer than any backoff, and there is no reconcile.
      await clock.advance(6000);
      const { maintenance, pop_maintenance } = table.values;
      for (const { modes } of replicas) {
        assert.deepEqual(modes, {
          maintenance: maintenance.enabled,
          popMaintenance: pop_maintenance.enabled,
        });
      }
      assert.equal(clock.pending, 0);
    },
  ));
});
