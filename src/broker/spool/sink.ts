/**
 * Where a spool drains to.
 *
 * @module
 */

import type { SpoolRecord } from "./spool_record.ts";

/** Records that follow each other in a log. */
export interface SpoolBatch {
  /** The log: a lowercase UUID. */
  readonly spoolId: string;
  /** The position that must be stored for the log before, 0 for none. */
  readonly after: number;
  /** The position to store: that of the last record. */
  readonly position: number;
  /** In the order in which they were accepted. None where a record is passed over. */
  readonly records: readonly SpoolRecord[];
}

/** What a {@linkcode SpoolSink} holds after a call. */
export interface SinkOutcome {
  /**
   * The position that is stored for the log now. It is the batch's where the batch is stored; any
   * other says that the batch's `after` did not match, and nothing was done.
   */
  readonly position: number;
}

/** Stores records, each exactly once, and how far it has come. */
export interface SpoolSink {
  /** The position that is stored for a log; 0 where it knows none. */
  position(spoolId: string): Promise<number>;

  /**
   * In one transaction, with the log's row locked: compares the position that is stored with `after`
   * and, where they are the same, stores the records in their order and `position` with them. So an
   * attempt of unknown outcome can be repeated, cut into other batches too, and one that arrives late
   * does nothing.
   *
   * It announces what it has stored by itself, after the commit. It must give up in bounded time. It
   * never forgets the position of a log that may still have files.
   *
   * @throws {RefusedRecordsError} where the records are at fault (SQLSTATE class 22 or 23): they are
   * tried one by one then, and one that is refused alone is set aside. Any other error means: later.
   */
  store(batch: SpoolBatch): Promise<SinkOutcome>;
}
