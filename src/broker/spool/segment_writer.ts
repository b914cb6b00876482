import { join } from "node:path";
import type { Logger } from "../../mesh/runtime.ts";
import { type SpoolFile, type SpoolFileSystem, writeAll } from "./file_system.ts";
import { Segment } from "./segment.ts";
import { formatSegmentName } from "./segment_name.ts";
import type { SpoolLog } from "./spool_log.ts";

/** What a {@linkcode SegmentWriter} is made of. */
export interface SegmentWriterOptions {
  /** Where the spool lies. */
  readonly fileSystem: SpoolFileSystem;
  /** Its directory, which exists. */
  readonly directory: string;
  /** Whose segments it makes. */
  readonly log: SpoolLog;
  /** A segment that would grow beyond this, in bytes, is followed by another. */
  readonly segmentBytesMax: number;
  /** A number for a new segment. */
  readonly nextNumber: () => number;
  /** Where trouble is reported. */
  readonly logger: Logger;
}

/** The file that is being written. */
interface Active {
  readonly segment: Segment;
  readonly file: SpoolFile;
}

/**
 * Writes to the newest segment of a log and begins new ones. After a failure it leaves a file that ends
 * with the last good record, or begins a new one, so that later writes work as soon as the disk does.
 */
export class SegmentWriter {
  readonly #options: SegmentWriterOptions;
  #active: Active | undefined;
  #closing: Promise<void> = Promise.resolve();

  /** Makes no file before the first write. */
  constructor(options: SegmentWriterOptions) {
    this.#options = options;
  }

  /**
   * Writes whole frames. Resolves to the segment once they are synced, and for a new file its entry
   * too; the caller counts the records and lets the segment grow. One call at a time.
   */
  async write(bytes: Uint8Array): Promise<Segment> {
    const active = await this.#activeFor(bytes.length);
    const { segment, file } = active;
    try {
      await writeAll(file, bytes, segment.bytes);
    } catch (error) {
      await this.#cut(active);
      throw error;
    }
    try {
      await file.sync();
      if (segment.bytes === 0) {
        await this.#options.fileSystem.syncDirectory(this.#options.directory);
      }
    } catch (error) {
      // Once a sync has failed, a later one that succeeds proves nothing about these bytes.
      await this.#cut(active);
      await this.#abandon(active);
      throw error;
    }
    return segment;
  }

  /** Nothing more is written to the present segment. */
  end(): void {
    const active = this.#active;
    if (active === undefined) return;
    this.#active = undefined;
    active.segment.isEnded = true;
    const closed = active.file.close().catch((error) => this.#warn("closed", active, error));
    this.#closing = Promise.all([this.#closing, closed]).then(() => {});
  }

  /** Ends the present segment; resolves once no file is open. */
  async close(): Promise<void> {
    this.end();
    await this.#closing;
  }

  async #activeFor(length: number): Promise<Active> {
    const { fileSystem, directory, log, segmentBytesMax, nextNumber } = this.#options;
    const bytes = this.#active?.segment.bytes ?? 0;
    if (bytes > 0 && bytes + length > segmentBytesMax) this.end();
    if (this.#active !== undefined) return this.#active;
    const number = nextNumber();
    const name = formatSegmentName({ number, logId: log.id, keyId: log.keyId });
    const path = join(directory, name);
    const file = await fileSystem.create(path);
    const segment = new Segment({ number, path });
    log.segments.push(segment);
    return this.#active = { segment, file };
  }

  /** Takes back what was not synced. */
  async #cut(active: Active): Promise<void> {
    try {
      await active.file.truncate(active.segment.bytes);
      await active.file.sync();
    } catch (error) {
      this.#warn("repaired", active, error);
      await this.#abandon(active);
    }
  }

  /** Goes on with another file. What was synced in this one stays. */
  async #abandon(active: Active): Promise<void> {
    if (this.#active !== active) return;
    this.end();
    const { segment } = active;
    if (segment.bytes > 0) return;
    const { fileSystem, log } = this.#options;
    const index = log.segments.indexOf(segment);
    if (index >= 0) log.segments.splice(index, 1);
    await fileSystem.remove(segment.path).catch((error) => this.#warn("removed", active, error));
  }

  #warn(verb: string, { segment: { path } }: Active, error: unknown): void {
    this.#options.logger.warn(`A spool file could not be ${verb}`, { path, error });
  }
}
