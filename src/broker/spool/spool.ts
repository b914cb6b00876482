import { resolve } from "node:path";
import { randomUuids } from "../uuid.ts";
import { Appender } from "./appender.ts";
import type { Catalog } from "./catalog.ts";
import { ensureDirectory } from "./directory.ts";
import { DrainStep } from "./drain_step.ts";
import { Drainer } from "./drainer.ts";
import { describeError, SpoolUnavailableError } from "./errors.ts";
import { FailedFolder } from "./failed_folder.ts";
import { Handover, HANDOVER_WAIT_MS_MAX } from "./handover.ts";
import type { SpoolLock } from "./lock.ts";
import { scanSpool } from "./scan.ts";
import { SegmentWriter } from "./segment_writer.ts";
import { SpoolLog } from "./spool_log.ts";
import { SPOOL_BYTES_MAX, type SpoolOptions } from "./spool_options.ts";
import type { SpoolPartition, SpoolRecord } from "./spool_record.ts";
import type { SpoolStats } from "./spool_stats.ts";

const SEGMENT_BYTES_MAX = 16 * 1024 * 1024;
const BATCH_RECORDS_MAX = 500;
const BATCH_BYTES_MAX = 4 * 1024 * 1024;

/** Where a push goes: straight to the store, or behind what the spool holds. */
export type PushRoute = "store" | "spool";

/** What {@linkcode Spool.open} has found. */
interface Opened {
  readonly catalog: Catalog;
  readonly failed: FailedFolder;
  readonly lock: SpoolLock;
}

/**
 * Messages on disk that wait for PostgreSQL.
 *
 * A record is appended, and only then answered; it drains to the sink in the order of the appends.
 * While records of a partition wait, pushes to it go behind them: ask {@linkcode Spool.admit} first.
 *
 * Records that are sealed with another key stay where they are until the key is back. They block the
 * partitions that they belong to, to which nothing can be pushed meanwhile, and nothing else.
 */
export class Spool implements AsyncDisposable {
  readonly #options: SpoolOptions;
  readonly #catalog: Catalog;
  readonly #failed: FailedFolder;
  readonly #lock: SpoolLock;
  readonly #log: SpoolLog;
  readonly #appender: Appender;
  readonly #handover: Handover;
  readonly #drainer: Drainer;
  readonly #bytesMax: number;
  #appendError: string | undefined;
  #drainError: string | undefined;
  #closing: Promise<void> | undefined;

  private constructor(options: SpoolOptions, { catalog, failed, lock }: Opened) {
    const { fileSystem, directory, sink, cipher, paused, clock, random, logger } = options;
    const batchRecordsMax = options.batchRecordsMax ?? BATCH_RECORDS_MAX;
    const batchBytesMax = options.batchBytesMax ?? BATCH_BYTES_MAX;
    this.#options = options;
    this.#catalog = catalog;
    this.#failed = failed;
    this.#lock = lock;
    this.#bytesMax = options.bytesMax ?? SPOOL_BYTES_MAX;
    const [id] = randomUuids(1, random);
    this.#log = new SpoolLog({ id: id!, keyId: cipher?.keyId, isLocked: false, stored: 0 });
    catalog.logs.push(this.#log);
    const writer = new SegmentWriter({
      fileSystem,
      directory,
      log: this.#log,
      segmentBytesMax: options.segmentBytesMax ?? SEGMENT_BYTES_MAX,
      nextNumber: () => catalog.nextNumber(),
      logger,
    });
    this.#appender = new Appender({
      log: this.#log,
      writer,
      cipher,
      onDone: (error) => this.#noteAppended(error),
    });
    this.#handover = new Handover(clock);
    const step = new DrainStep({
      fileSystem,
      sink,
      failed,
      cipher,
      endIfIdle: () => this.#appender.endIfIdle(),
      isStopped: () => this.#closing !== undefined || paused(),
      batchRecordsMax,
      batchBytesMax,
      logger,
    });
    this.#drainer = new Drainer({
      catalog,
      step,
      handover: this.#handover,
      paused,
      batchRecordsMax,
      batchBytesMax,
      onDone: (error) => this.#drainError = errorText(error),
      clock,
      random,
      logger,
    });
  }

  /**
   * Opens the spool in a directory, reports what waits there, and begins to drain it unless it is
   * paused.
   *
   * @throws {SpoolInUseError} where another process works on it. Other errors are the file system's.
   */
  static async open(options: SpoolOptions): Promise<Spool> {
    const { fileSystem, acquireLock, cipher, logger } = options;
    const directory = resolve(options.directory);
    await ensureDirectory(fileSystem, directory);
    const lock = await acquireLock(directory);
    try {
      const onDamage = (path: string, { offset, end }: { offset: number; end: number }) =>
        logger.error("A spool file is damaged; a message may be lost", {
          path,
          offset,
          bytes: end - offset,
        });
      const keyId = cipher?.keyId;
      const catalog = await scanSpool({ fileSystem, directory, keyId, onDamage });
      const failed = await FailedFolder.open(fileSystem, directory);
      const spool = new Spool({ ...options, directory }, { catalog, failed, lock });
      spool.#report();
      spool.#drainer.start();
      return spool;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /**
   * Says where a push to some partitions goes now. It waits, at most 1 s, while the last batch drains
   * before it could go straight to the store, and while pushes come faster than they drain.
   *
   * A push that is sent to the store and fails there may be appended all the same.
   *
   * @throws {SpoolUnavailableError} where records of the partitions are sealed with another key.
   */
  async admit(partitions: readonly SpoolPartition[]): Promise<PushRoute> {
    const { clock, paused } = this.#options;
    const deadline = clock.now() + HANDOVER_WAIT_MS_MAX;
    for (;;) {
      this.#requireUnlocked(partitions);
      if (paused()) return "spool";
      if (!this.#catalog.holdsAny(partitions, { isLocked: false })) return "store";
      const leftMs = deadline - clock.now();
      if (!this.#handover.isOpen || leftMs <= 0) return "spool";
      await this.#handover.wait(leftMs);
    }
  }

  /** Whether records of a partition wait, or are on their way to the disk. */
  holds(partition: SpoolPartition): boolean {
    const partitions = [partition];
    return this.#catalog.holdsAny(partitions, { isLocked: false }) ||
      this.#catalog.holdsAny(partitions, { isLocked: true });
  }

  /**
   * Appends records, one after the other and behind all that were given before. Resolves once they
   * would outlast a loss of power: then they can be answered as buffered.
   *
   * @throws {SpoolUnavailableError} where the spool is full, closed, or the disk refuses, or where
   * records of one of the partitions are sealed with another key. None of the records counts then.
   * @throws {TypeError} If a payload is not well-formed text.
   */
  async append(records: readonly SpoolRecord[]): Promise<void> {
    if (this.#closing !== undefined) {
      throw new SpoolUnavailableError("The spool is closed", { reason: "closed" });
    }
    if (records.length === 0) return;
    this.#requireUnlocked(records);
    const prepared = this.#appender.prepare(records);
    const bytes = this.#bytes + prepared.bytes;
    if (bytes > this.#bytesMax) {
      const message = `The spool may hold ${this.#bytesMax} bytes and would hold ${bytes}; ` +
        "let it drain, or empty its failed folder";
      this.#appendError = message;
      throw new SpoolUnavailableError(message, { reason: "full" });
    }
    await this.#appender.append(prepared);
  }

  /** Looks now whether it may drain: maintenance has begun or ended, or PostgreSQL is back. */
  wake(): void {
    this.#drainer.wake();
    this.#handover.lookAgain();
  }

  /**
   * Resolves as soon as nothing is left that can be drained, which is not before it may drain, or
   * when it is closed. Records that are sealed with another key are left.
   */
  drained(): Promise<void> {
    return this.#drainer.drained();
  }

  /** How it is doing. */
  stats(): SpoolStats {
    const { count, totalBytes, recordCount } = this.#failed.files;
    const lockedCount = this.#catalog.pendingCount({ isLocked: true });
    const oldestAt = this.#catalog.oldestAt;
    const lastError = this.#appendError ?? this.#drainError;
    return {
      pendingCount: this.#catalog.pendingCount({ isLocked: false }) + lockedCount,
      lockedCount,
      failedCount: recordCount,
      failedFiles: { count, totalBytes },
      bytes: this.#bytes,
      bytesMax: this.#bytesMax,
      oldestAgeMs: oldestAt === undefined
        ? undefined
        : Math.max(this.#options.wallClock() - oldestAt, 0),
      isHealthy: lastError === undefined,
      lastError,
      sinkError: this.#drainer.sinkError,
    };
  }

  /**
   * Takes no more records; resolves once those that were given are on disk, a batch that is under way
   * has ended, and the lock is released. Closing twice is harmless.
   */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** The same as {@linkcode Spool.close | close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#drainer.close();
    await this.#appender.close();
    await this.#lock.release();
  }

  get #bytes(): number {
    return this.#catalog.bytes + this.#appender.queuedBytes + this.#failed.files.totalBytes;
  }

  #requireUnlocked(partitions: readonly SpoolPartition[]): void {
    if (!this.#catalog.holdsAny(partitions, { isLocked: true })) return;
    throw new SpoolUnavailableError(
      "Earlier messages of this partition are spooled under another encryption key; start with that key to store them",
      { reason: "locked" },
    );
  }

  #noteAppended(error: unknown): void {
    this.#appendError = errorText(error);
    if (error === undefined) this.#drainer.noteAppended();
    else this.#options.logger.error("The spool could not be written", { error });
  }

  #report(): void {
    const { logger, directory, cipher } = this.#options;
    const { pendingCount, bytes, failedFiles } = this.stats();
    if (pendingCount > 0) {
      logger.info("Messages wait in the spool", { directory, pendingCount, bytes });
    }
    if (failedFiles.count > 0) {
      logger.warn("Messages lie in the spool's failed folder", { directory, ...failedFiles });
    }
    for (const log of this.#catalog.logs.filter((log) => log.isLocked)) {
      logger.error("Spooled messages are sealed with another key and wait for it", {
        directory,
        spoolId: log.id,
        keyId: log.keyId,
        keyIdGiven: cipher?.keyId,
        count: log.pendingCount,
      });
    }
  }
}

function errorText(error: unknown): string | undefined {
  return error === undefined ? undefined : describeError(error);
}
