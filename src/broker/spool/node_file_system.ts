import * as fs from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "./errors.ts";
import type { SpoolEntry, SpoolFile, SpoolFileSystem } from "./file_system.ts";

/** The machine's own files, by what Deno and Node share. */
export const nodeFileSystem: SpoolFileSystem = {
  makeDirectory: (path) => fs.mkdir(path, { mode: 0o700 }),
  list,
  create: async (path) => new NodeFile(await fs.open(path, "wx+", 0o600)),
  open: async (path) => new NodeFile(await fs.open(path, "r+")),
  remove: (path) => fs.unlink(path),
  syncDirectory,
};

class NodeFile implements SpoolFile {
  readonly #handle: fs.FileHandle;

  constructor(handle: fs.FileHandle) {
    this.#handle = handle;
  }

  async read(buffer: Uint8Array, position: number): Promise<number> {
    return (await this.#handle.read(buffer, 0, buffer.length, position)).bytesRead;
  }

  async write(bytes: Uint8Array, position: number): Promise<number> {
    return (await this.#handle.write(bytes, 0, bytes.length, position)).bytesWritten;
  }

  truncate(length: number): Promise<void> {
    return this.#handle.truncate(length);
  }

  /** The length is part of what fdatasync saves, times are not; on macOS it flushes the drive too. */
  sync(): Promise<void> {
    return this.#handle.datasync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

async function list(path: string): Promise<SpoolEntry[]> {
  const entries = await fs.readdir(path, { withFileTypes: true });
  const listed = await Promise.all(entries.map(async (entry) => {
    const bytes = entry.isFile() ? await sizeOf(join(path, entry.name)) : 0;
    return { name: entry.name, isDirectory: entry.isDirectory(), bytes };
  }));
  return listed.filter((entry): entry is SpoolEntry => entry.bytes !== undefined);
}

/** The size of a file, or undefined where it has been removed meanwhile. */
async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await fs.stat(path)).size;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await fs.open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
