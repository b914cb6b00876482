import { mapInGroups } from "../map_in_groups.ts";
import type { Cipher } from "./cipher.ts";
import { describeError, SpoolUnavailableError } from "./errors.ts";
import { type Frame, FRAME_HEADER_BYTES, writeFrame } from "./frame.ts";
import type { SegmentWriter } from "./segment_writer.ts";
import type { SpoolLog } from "./spool_log.ts";
import { encodeRecord, type SpoolRecord } from "./spool_record.ts";

/** So much is written and synced at a time, in bytes, or one append if that is more. */
const GROUP_BYTES_MAX = 8 * 1024 * 1024;

/** What an {@linkcode Appender} is made of. */
export interface AppenderOptions {
  /** What to append to. */
  readonly log: SpoolLog;
  /** Writes and syncs. The appender closes it. */
  readonly writer: SegmentWriter;
  /** Seals the records; without one they are written as they are. */
  readonly cipher: Cipher | undefined;
  /** Told after each sync; with the error where it, or what comes before it, failed. */
  readonly onDone: (error?: unknown) => void;
}

/** Records that are ready to be appended. */
export interface Prepared {
  /** One frame for each, without a position and not sealed yet. */
  readonly frames: readonly Frame[];
  /** The bytes that they will take in the file. */
  readonly bytes: number;
}

/** One call that waits for its bytes to be synced. */
interface Waiting extends Prepared {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Appends records to a log. One sync serves all calls that wait for one. */
export class Appender {
  readonly #options: AppenderOptions;
  readonly #queue: Waiting[] = [];
  #position = 0;
  #queuedBytes = 0;
  #running: Promise<void> | undefined;

  /** Touches no file before the first append. */
  constructor(options: AppenderOptions) {
    this.#options = options;
  }

  /** How many bytes wait to be written. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /**
   * Makes frames of records.
   *
   * @throws {TypeError} If a payload is not well-formed text.
   */
  prepare(records: readonly SpoolRecord[]): Prepared {
    const { log, cipher } = this.#options;
    const overhead = FRAME_HEADER_BYTES + (cipher?.overheadBytes ?? 0);
    let bytes = 0;
    const frames = records.map((record) => {
      const body = encodeRecord(record);
      bytes += overhead + body.length;
      return { position: 0, acceptedAt: record.acceptedAt, lane: log.laneOf(record), body };
    });
    return { frames, bytes };
  }

  /**
   * Appends frames after all that were given before. From this call on the log holds their
   * partitions. Resolves once they are synced.
   *
   * @throws {SpoolUnavailableError} where the disk refuses. Nothing is acknowledged then. Should the
   * disk refuse the repair as well and then lose power, the records may come up all the same.
   */
  append({ frames, bytes }: Prepared): Promise<void> {
    const { log } = this.#options;
    // A position is never given twice, not even after a failure that may have left bytes behind.
    const numbered = frames.map((frame) => ({ ...frame, position: ++this.#position }));
    for (const { lane, position } of numbered) log.hold(lane, position);
    log.queuedCount += numbered.length;
    this.#queuedBytes += bytes;
    return new Promise((resolve, reject) => {
      this.#queue.push({ frames: numbered, bytes, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Ends the present segment, if nothing is being appended; false where something is. */
  endIfIdle(): boolean {
    if (this.#running !== undefined) return false;
    this.#options.writer.end();
    return true;
  }

  /** Resolves once all that was given is synced or refused, and no file is open. */
  async close(): Promise<void> {
    await this.#running;
    await this.#options.writer.close();
  }

  async #run(): Promise<void> {
    for (;;) {
      // Callers that one sync has released ask again together; this turn lets all of them in.
      await Promise.resolve();
      const group = this.#takeGroup();
      if (group.length === 0) break;
      await this.#commit(group);
    }
    this.#running = undefined;
  }

  #takeGroup(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const waiting of this.#queue) {
      bytes += waiting.bytes;
      if (count > 0 && bytes > GROUP_BYTES_MAX) break;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  /** Writes a group and tells its callers. Never rejects. */
  async #commit(group: readonly Waiting[]): Promise<void> {
    const frames = group.flatMap((waiting) => waiting.frames);
    const bytes = group.reduce((sum, waiting) => sum + waiting.bytes, 0);
    const error = await this.#write(frames, bytes);
    const { log, onDone } = this.#options;
    log.queuedCount -= frames.length;
    this.#queuedBytes -= bytes;
    if (error !== undefined) log.releaseIfEmpty();
    onDone(error);
    for (const { resolve, reject } of group) {
      if (error === undefined) resolve();
      else reject(error);
    }
  }

  async #write(
    frames: readonly Frame[],
    bytes: number,
  ): Promise<SpoolUnavailableError | undefined> {
    const { log, writer, cipher } = this.#options;
    try {
      const sealed = cipher === undefined ? frames : await mapInGroups(
        frames,
        async (frame) => ({ ...frame, body: await cipher.seal(frame.body) }),
      );
      const target = new Uint8Array(bytes);
      let end = 0;
      for (const frame of sealed) end = writeFrame(target, end, { ...frame, marker: log.marker });
      const segment = await writer.write(target);
      for (const frame of frames) segment.count(frame);
      segment.grow(bytes);
      return undefined;
    } catch (error) {
      return new SpoolUnavailableError(`The spool cannot be written: ${describeError(error)}`, {
        reason: "disk",
        cause: error,
      });
    }
  }
}
