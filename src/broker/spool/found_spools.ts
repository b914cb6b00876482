import { basename, dirname, join, resolve } from "node:path";
import { codeOf } from "./errors.ts";
import type { SpoolEntry, SpoolFileSystem } from "./file_system.ts";
import { findSegments, type FoundSegment } from "./find_segments.ts";

/** The spool of another replica. */
export interface FoundSpool {
  /** Its directory. */
  readonly directory: string;
  /** How many segments lie in it. */
  readonly segmentCount: number;
  /** Their sizes together, in bytes. */
  readonly bytes: number;
}

/** What the system says of a directory that is not for this process, or is gone. */
const NOT_OURS: readonly string[] = ["EACCES", "EPERM", "ENOENT"];

/**
 * The spools beside the one in `directory`, that is, in the same directory as it, in which there is
 * something. Each can be drained here too: {@linkcode Spool.open} it, await
 * {@linkcode Spool.drained}, and close it. It is refused while its own process lives.
 */
export async function findSpoolsBeside(
  fileSystem: SpoolFileSystem,
  directory: string,
): Promise<FoundSpool[]> {
  const own = resolve(directory);
  const parent = dirname(own);
  const found: FoundSpool[] = [];
  for (const { name, isDirectory } of await ifReadable<SpoolEntry>(fileSystem.list(parent))) {
    if (!isDirectory || name === basename(own)) continue;
    const path = join(parent, name);
    const segments = await ifReadable<FoundSegment>(findSegments(fileSystem, path));
    const bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
    if (segments.length > 0) found.push({ directory: path, segmentCount: segments.length, bytes });
  }
  return found;
}

/** What a directory holds for this process: nothing where it may not read it. */
async function ifReadable<T>(listing: Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await listing;
  } catch (error) {
    if (NOT_OURS.includes(codeOf(error) ?? "")) return [];
    throw error;
  }
}
