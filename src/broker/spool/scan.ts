/**
 * What lies in the directory of a spool.
 *
 * @module
 */

import { Catalog } from "./catalog.ts";
import type { SpoolFileSystem } from "./file_system.ts";
import { findSegments } from "./find_segments.ts";
import { Segment } from "./segment.ts";
import { type Piece, SegmentReader } from "./segment_reader.ts";
import { SpoolLog } from "./spool_log.ts";

/** Told of each damaged stretch. */
export type OnDamage = (path: string, piece: Piece) => void;

/** What {@linkcode scanSpool} needs. */
export interface ScanOptions {
  /** Where the spool lies. */
  readonly fileSystem: SpoolFileSystem;
  /** Its directory. */
  readonly directory: string;
  /** Names the key that this process has; undefined where it has none. */
  readonly keyId: string | undefined;
  /** Told of each damaged stretch. */
  readonly onDamage: OnDamage;
}

/** Reads every segment once, to find its records and the partitions that they belong to. */
export async function scanSpool(options: ScanOptions): Promise<Catalog> {
  const { fileSystem, directory, keyId, onDamage } = options;
  const catalog = new Catalog();
  const logs = new Map<string, SpoolLog>();
  for (const found of await findSegments(fileSystem, directory)) {
    catalog.noteNumber(found.number);
    let log = logs.get(found.logId);
    if (log === undefined) {
      // Records that are not sealed can be read whatever the key.
      const isLocked = found.keyId !== undefined && found.keyId !== keyId;
      log = new SpoolLog({ id: found.logId, keyId: found.keyId, isLocked });
      logs.set(log.id, log);
      catalog.logs.push(log);
    }
    const segment = new Segment({ ...found, isEnded: true });
    await scanSegment(fileSystem, { log, segment, onDamage });
    log.segments.push(segment);
  }
  return catalog;
}

async function scanSegment(
  fileSystem: SpoolFileSystem,
  { log, segment, onDamage }: {
    readonly log: SpoolLog;
    readonly segment: Segment;
    readonly onDamage: OnDamage;
  },
): Promise<void> {
  const file = await fileSystem.open(segment.path);
  try {
    const reader = new SegmentReader({
      file,
      marker: log.marker,
      offset: 0,
      end: segment.bytes,
    });
    for (let piece = await reader.next(); piece !== undefined; piece = await reader.next()) {
      if (piece.frame === undefined) {
        onDamage(segment.path, piece);
        continue;
      }
      segment.count(piece.frame);
      log.hold(piece.frame.lane, piece.frame.position);
    }
  } finally {
    await file.close();
  }
}
