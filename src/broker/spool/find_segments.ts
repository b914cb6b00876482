import { join } from "node:path";
import type { SpoolFileSystem } from "./file_system.ts";
import { parseSegmentName, type SegmentName } from "./segment_name.ts";

/** A segment that lies in a directory. */
export interface FoundSegment extends SegmentName {
  /** The file. */
  readonly path: string;
  /** Its size, in bytes. */
  readonly bytes: number;
}

/** The segments in a directory, oldest first. */
export async function findSegments(
  fileSystem: SpoolFileSystem,
  directory: string,
): Promise<FoundSegment[]> {
  const found: FoundSegment[] = [];
  for (const { name, bytes, isDirectory } of await fileSystem.list(directory)) {
    const parsed = isDirectory ? undefined : parseSegmentName(name);
    if (parsed !== undefined) found.push({ ...parsed, path: join(directory, name), bytes });
  }
  return found.sort((a, b) => a.number - b.number);
}
