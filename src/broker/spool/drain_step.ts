import type { Logger } from "../../mesh/runtime.ts";
import { type BatchEntry, readBatch } from "./batch_reader.ts";
import type { Cipher } from "./cipher.ts";
import { describeError, RefusedRecordsError } from "./errors.ts";
import type { FailedFolder } from "./failed_folder.ts";
import type { SpoolFile, SpoolFileSystem } from "./file_system.ts";
import type { Segment } from "./segment.ts";
import type { Piece } from "./segment_reader.ts";
import type { SpoolSink } from "./sink.ts";
import type { SpoolLog } from "./spool_log.ts";

/** What a {@linkcode DrainStep} is made of. */
export interface DrainStepOptions {
  /** Where the spool lies. */
  readonly fileSystem: SpoolFileSystem;
  /** Where the records go. */
  readonly sink: SpoolSink;
  /** Where those go that cannot be stored. */
  readonly failed: FailedFolder;
  /** Opens the records. */
  readonly cipher: Cipher | undefined;
  /** Ends the segment that is being appended to; false where an append is under way. */
  readonly endIfIdle: () => boolean;
  /** Whether to do nothing more, say because maintenance began. */
  readonly isStopped: () => boolean;
  /** At most so many records in a batch. */
  readonly batchRecordsMax: number;
  /** At most so many bytes in a batch, or one record if that is more. */
  readonly batchBytesMax: number;
  /** Where trouble is reported. */
  readonly logger: Logger;
}

/** The sink said no, or nothing. `cause` is what it said. */
export class SinkError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "SinkError";
}

/** One record on its way, and the segment that it comes from. */
interface Origin {
  readonly log: SpoolLog;
  readonly segment: Segment;
  readonly file: SpoolFile;
}

/** Drains one batch of a log. */
export class DrainStep {
  readonly #options: DrainStepOptions;

  /** Does nothing yet. */
  constructor(options: DrainStepOptions) {
    this.#options = options;
  }

  /**
   * Stores the next batch of a log that has work, and removes the segments that are done with. Where
   * it is not known how far the log is stored, it asks for that first.
   *
   * @throws {SinkError} where the sink failed; any other error is the file system's. It can be
   * repeated.
   */
  async run(log: SpoolLog): Promise<void> {
    log.stored ??= await this.#ask(() => this.#options.sink.position(log.id));
    const segment = log.segments.find((segment) => !segment.isDrained);
    if (segment !== undefined) await this.#drain(log, segment);
    await this.#removeDrained(log);
    log.releaseIfEmpty();
  }

  async #drain(log: SpoolLog, segment: Segment): Promise<void> {
    const { fileSystem, cipher, batchRecordsMax, batchBytesMax } = this.#options;
    const file = await fileSystem.open(segment.path);
    try {
      const origin = { log, segment, file };
      const entries = await readBatch({
        ...origin,
        cipher: log.isLocked ? undefined : cipher,
        recordsMax: batchRecordsMax,
        bytesMax: batchBytesMax,
        onDamage: (piece) => this.#keepDamage(origin, piece),
      });
      if (log.isLocked) log.isStuck = entries.length > 0;
      else await this.#store(origin, entries);
    } finally {
      await file.close();
    }
  }

  async #store(origin: Origin, entries: readonly BatchEntry[]): Promise<void> {
    const [first] = entries;
    if (first === undefined) return;
    if (first.record === undefined) {
      await this.#setAside(origin, first, first.error);
      return;
    }
    const bad = entries.findIndex((entry) => entry.record === undefined);
    const good = bad < 0 ? entries : entries.slice(0, bad);
    try {
      await this.#storeBatch(origin, good);
    } catch (error) {
      if (!(error instanceof RefusedRecordsError)) throw error;
      if (good.length === 1) await this.#setAside(origin, first, error);
      else await this.#storeOneByOne(origin, good);
    }
  }

  async #storeOneByOne(origin: Origin, entries: readonly BatchEntry[]): Promise<void> {
    for (const entry of entries) {
      if (this.#options.isStopped()) return;
      let isStored: boolean;
      try {
        isStored = await this.#storeBatch(origin, [entry]);
      } catch (error) {
        if (!(error instanceof RefusedRecordsError)) throw error;
        isStored = await this.#setAside(origin, entry, error);
      }
      if (!isStored) return;
    }
  }

  /** Keeps a record that cannot be stored in the failed folder, and passes it over. */
  async #setAside(origin: Origin, entry: BatchEntry, reason: unknown): Promise<boolean> {
    const { log, segment, file } = origin;
    const { offset, end, frame } = entry.piece;
    const { failed, logger } = this.#options;
    const path = await failed.keep({
      kind: "record",
      file,
      logId: log.id,
      segment: segment.number,
      offset,
      end,
    });
    const { tenant, queue, partition, messageId, transactionId } = entry.record ?? {};
    logger.error("A spooled message could not be stored and was set aside", {
      spoolId: log.id,
      position: frame.position,
      path,
      reason: describeError(reason),
      ...(entry.record === undefined ? {} : { tenant, queue, partition, messageId, transactionId }),
    });
    return await this.#storeBatch(origin, [{ ...entry, record: undefined }]);
  }

  /** Stores entries, or only their position where they have no records; false where it moved. */
  async #storeBatch(
    { log, segment }: Origin,
    entries: readonly BatchEntry[],
  ): Promise<boolean> {
    const last = entries.at(-1)!.piece;
    const after = log.stored ?? 0;
    const { position } = last.frame;
    const records = entries.flatMap(({ record }) => record === undefined ? [] : [record]);
    const batch = { spoolId: log.id, after, position, records };
    const outcome = await this.#ask(() => this.#options.sink.store(batch));
    if (outcome.position === after) {
      throw new SinkError(`The sink left position ${after} as it was and gave no reason`);
    }
    if (outcome.position !== position) {
      // An attempt of unknown outcome was stored after all, or PostgreSQL went back to a backup.
      log.rewind(outcome.position);
      return false;
    }
    log.stored = position;
    for (const { piece: { end, frame } } of entries) {
      segment.pass(end, frame);
      log.release(frame.lane, frame.position);
    }
    return true;
  }

  /** Tells what the sink says from what the disk says. A refusal stays what it is. */
  async #ask<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof RefusedRecordsError) throw error;
      throw new SinkError(describeError(error), { cause: error });
    }
  }

  async #keepDamage({ log, segment, file }: Origin, { offset, end }: Piece): Promise<void> {
    const { failed, logger } = this.#options;
    const path = await failed.keep({
      kind: "damaged",
      file,
      logId: log.id,
      segment: segment.number,
      offset,
      end,
    });
    logger.error("Damaged bytes of the spool were set aside; a message may be lost", {
      spoolId: log.id,
      segment: segment.path,
      offset,
      bytes: end - offset,
      path,
    });
  }

  async #removeDrained(log: SpoolLog): Promise<void> {
    const { fileSystem, endIfIdle, logger } = this.#options;
    for (let first = log.segments[0]; first?.isDrained; first = log.segments[0]) {
      if (!first.isEnded && !endIfIdle()) return;
      log.segments.shift();
      try {
        await fileSystem.remove(first.path);
      } catch (error) {
        // What is in it is stored, and the next start passes it over.
        logger.warn("A drained spool file could not be removed", { path: first.path, error });
      }
    }
  }
}
