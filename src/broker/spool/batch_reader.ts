import type { Cipher } from "./cipher.ts";
import type { SpoolFile } from "./file_system.ts";
import type { Frame } from "./frame.ts";
import type { Segment } from "./segment.ts";
import { type Piece, SegmentReader } from "./segment_reader.ts";
import type { SpoolLog } from "./spool_log.ts";
import { decodeRecord, type SpoolRecord } from "./spool_record.ts";

/** One record of a batch. */
export interface BatchEntry {
  /** Its header, and where it lies in the file. */
  readonly piece: Piece & { readonly frame: Frame };
  /** What it spells; undefined where it cannot be opened or makes no sense. */
  readonly record: SpoolRecord | undefined;
  /** Why it cannot be opened. */
  readonly error?: unknown;
}

/** What {@linkcode readBatch} needs. */
export interface ReadBatchOptions {
  /** The segment's log, of which it is known how far it is stored. */
  readonly log: SpoolLog;
  /** Where to read, from what is drained on. */
  readonly segment: Segment;
  /** The segment's file, open. */
  readonly file: SpoolFile;
  /** Opens the records. */
  readonly cipher: Cipher | undefined;
  /** At most so many records. */
  readonly recordsMax: number;
  /** At most so many bytes, or one record if that is more. */
  readonly bytesMax: number;
  /** Called for each damaged stretch before it is passed. */
  readonly onDamage: (piece: Piece) => Promise<void>;
}

/**
 * Reads the next records of a segment that are not stored yet, up to a damaged stretch. What comes
 * before them, stored or damaged, is passed. None are left where it resolves to none.
 */
export async function readBatch(options: ReadBatchOptions): Promise<BatchEntry[]> {
  const { log, segment, file, recordsMax, bytesMax, onDamage } = options;
  const reader = new SegmentReader({
    file,
    marker: log.marker,
    offset: segment.drainedBytes,
    end: segment.bytes,
  });
  const found: BatchEntry["piece"][] = [];
  let bytes = 0;
  for (let piece = await reader.next(); piece !== undefined; piece = await reader.next()) {
    const { frame, offset, end } = piece;
    const isToStore = frame !== undefined && frame.position > (log.stored ?? 0);
    if (isToStore) {
      bytes += end - offset;
      if (found.length > 0 && bytes > bytesMax) break;
      if (found.push({ offset, end, frame }) === recordsMax) break;
    } else {
      if (found.length > 0) break;
      if (frame === undefined) await onDamage(piece);
      else log.release(frame.lane, frame.position);
      segment.pass(end, frame);
    }
  }
  return Promise.all(found.map((piece) => openEntry(piece, options)));
}

async function openEntry(
  piece: BatchEntry["piece"],
  { log, cipher }: ReadBatchOptions,
): Promise<BatchEntry> {
  const { body, acceptedAt } = piece.frame;
  try {
    const plain = log.keyId === undefined || cipher === undefined ? body : await cipher.open(body);
    return { piece, record: decodeRecord(plain, acceptedAt) };
  } catch (error) {
    return { piece, record: undefined, error };
  }
}
