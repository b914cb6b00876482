/**
 * Making a directory that outlasts a loss of power.
 *
 * @module
 */

import { dirname } from "node:path";
import { codeOf } from "./errors.ts";
import type { SpoolFileSystem } from "./file_system.ts";

/** What the system says of a directory that this process may not read, or that takes no writes. */
const NOT_OURS: readonly string[] = ["EACCES", "EPERM", "EINVAL", "EROFS"];

/**
 * Makes a directory and those above it where they are missing, and syncs their entries. Those that
 * exist are synced as well: whoever made them may have crashed before it came to that.
 *
 * @param path An absolute path.
 */
export async function ensureDirectory(fileSystem: SpoolFileSystem, path: string): Promise<void> {
  const isNew = await make(fileSystem, path);
  await syncEntry(fileSystem, path, { isNew });
  for (let above = dirname(path); above !== dirname(above); above = dirname(above)) {
    await syncEntry(fileSystem, above, { isNew: false });
  }
}

/** Makes one directory, after those above it; false where it exists. */
async function make(fileSystem: SpoolFileSystem, path: string): Promise<boolean> {
  try {
    return await makeLast(fileSystem, path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
  }
  await ensureDirectory(fileSystem, dirname(path));
  return await makeLast(fileSystem, path);
}

/**
 * Makes one directory in one that exists; false where it exists. Not found now means that it cannot be
 * made: in /proc, say, or behind a symbolic link that leads nowhere.
 */
async function makeLast(fileSystem: SpoolFileSystem, path: string): Promise<boolean> {
  try {
    await fileSystem.makeDirectory(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function syncEntry(
  fileSystem: SpoolFileSystem,
  path: string,
  { isNew }: { readonly isNew: boolean },
): Promise<void> {
  try {
    await fileSystem.syncDirectory(dirname(path));
  } catch (error) {
    // An old entry in a directory that is none of ours was made, and synced, by someone else.
    if (isNew || !NOT_OURS.includes(codeOf(error) ?? "")) throw error;
  }
}
