import { Prng } from "../../../simulation/prng.ts";
import { VirtualClock } from "../../../simulation/virtual_clock.ts";
import { MemoryLogger } from "../../testing/memory_logger.ts";
import type { SpoolSink } from "../sink.ts";
import { Spool } from "../spool.ts";
import type { SpoolOptions } from "../spool_options.ts";
import type { SpoolRecord } from "../spool_record.ts";
import { MemorySink } from "./memory_sink.ts";
import { SimulatedFileSystem } from "./simulated_file_system.ts";

/** Where the spool lies on the simulated disk. */
export const DIRECTORY = "/data/queen-spool/a";

/** The wall clock at the beginning of a world, in milliseconds. */
export const EPOCH_MS = 1_700_000_000_000;

/** A machine with a disk, time, and a PostgreSQL that is elsewhere. */
export class SpoolWorld {
  readonly prng: Prng;
  readonly clock = new VirtualClock();
  readonly logger = new MemoryLogger();
  readonly sink: MemorySink;
  fileSystem: SimulatedFileSystem;
  /** Whether maintenance is on. */
  isPaused = false;
  #recordCount = 0;

  constructor(seed = 1, { isChoppy = false } = {}) {
    this.prng = new Prng(seed);
    this.sink = new MemorySink({ clock: this.clock, prng: this.prng.fork() });
    this.fileSystem = new SimulatedFileSystem({ prng: this.prng.fork(), isChoppy });
  }

  /** The wall clock. */
  readonly wallClock = (): number => EPOCH_MS + this.clock.now();

  /** Opens the spool on the machine as it runs now. */
  open(changes: Partial<SpoolOptions> = {}): Promise<Spool> {
    return Spool.open({
      directory: DIRECTORY,
      fileSystem: this.fileSystem,
      acquireLock: () => Promise.resolve({ release: () => Promise.resolve() }),
      sink: whileAlive(this.fileSystem, this.sink),
      paused: () => this.isPaused,
      clock: this.clock,
      wallClock: this.wallClock,
      random: this.prng.random,
      logger: this.logger,
      ...changes,
    });
  }

  /** The power goes, if it has not yet, and comes back. */
  restart(): void {
    this.fileSystem = this.fileSystem.restart();
  }

  /** A message that differs from all before. */
  record(changes: Partial<SpoolRecord> = {}): SpoolRecord {
    const n = ++this.#recordCount;
    return {
      tenant: "00000000-0000-0000-0000-000000000001",
      queue: "orders",
      partition: "Default",
      messageId: `m${n}`,
      transactionId: `t${n}`,
      payload: `{"n":${n}}`,
      acceptedAt: this.wallClock(),
      ...changes,
    };
  }

  /** So many different messages. */
  records(count: number, changes: Partial<SpoolRecord> = {}): SpoolRecord[] {
    return Array.from({ length: count }, () => this.record(changes));
  }

  /** The names of the segments. */
  segmentNames(): string[] {
    return this.fileSystem.namesIn(DIRECTORY).filter((name) => name.endsWith(".segment"));
  }

  /** The segments, oldest first. */
  segmentPaths(): string[] {
    return this.segmentNames().map((name) => `${DIRECTORY}/${name}`);
  }

  /** The messages of the log, without their fields. */
  logged(): string[] {
    return this.logger.entries.map((entry) => entry.message);
  }
}

/** The sink for one run of a machine: what has crashed asks nothing and hears nothing. */
function whileAlive(fileSystem: SimulatedFileSystem, sink: SpoolSink): SpoolSink {
  async function ask<T>(call: () => Promise<T>): Promise<T> {
    const never = new Promise<never>(() => {});
    if (fileSystem.isCrashed) return await never;
    try {
      const answer = await call();
      return fileSystem.isCrashed ? await never : answer;
    } catch (error) {
      return fileSystem.isCrashed ? await never : Promise.reject(error);
    }
  }
  return {
    position: (spoolId) => ask(() => sink.position(spoolId)),
    store: (batch) => ask(() => sink.store(batch)),
  };
}
