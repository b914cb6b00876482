import { join } from "node:path";
import { ensureDirectory } from "./directory.ts";
import { codeOf } from "./errors.ts";
import { type SpoolEntry, type SpoolFile, type SpoolFileSystem, writeAll } from "./file_system.ts";

/** The folder's name inside a spool's directory. */
export const FAILED_FOLDER = "failed";

/** So much is copied at a time, in bytes. */
const COPY_BYTES = 256 * 1024;

/** What is kept in a file of its own. */
export interface KeptStretch {
  /**
   * `record` is one that could not be stored or opened, `damaged` are bytes in which no record could
   * be found.
   */
  readonly kind: "record" | "damaged";
  /** The file that it lies in. */
  readonly file: SpoolFile;
  /** The id of the log and the number of the segment, which give the new file its name. */
  readonly logId: string;
  /** See `logId`: segment numbers begin again once a spool is empty, ids do not. */
  readonly segment: number;
  /** Where it begins in the file. */
  readonly offset: number;
  /** Where it ends. */
  readonly end: number;
}

/** What lies in the folder. */
export interface FailedFiles {
  /** How many files. */
  readonly count: number;
  /** Their sizes together, in bytes. */
  readonly totalBytes: number;
  /** How many of them are records. */
  readonly recordCount: number;
}

/**
 * The folder for what cannot be drained. The bytes are kept as they were, sealed where they were
 * sealed, one file for each stretch. Nothing here removes them.
 */
export class FailedFolder {
  readonly #fileSystem: SpoolFileSystem;
  readonly #path: string;
  #files: FailedFiles = { count: 0, totalBytes: 0, recordCount: 0 };

  private constructor(fileSystem: SpoolFileSystem, path: string) {
    this.#fileSystem = fileSystem;
    this.#path = path;
  }

  /** Looks what is in the folder of a spool; it need not exist. */
  static async open(fileSystem: SpoolFileSystem, directory: string): Promise<FailedFolder> {
    const folder = new FailedFolder(fileSystem, join(directory, FAILED_FOLDER));
    await folder.#count();
    return folder;
  }

  /** What lies in it now. */
  get files(): FailedFiles {
    return this.#files;
  }

  /**
   * Copies a stretch into a file and resolves to its path once it is synced. Doing it again, say after
   * a crash, completes the same file: it is never removed, since it may hold the only copy.
   */
  async keep({ kind, file, logId, segment, offset, end }: KeptStretch): Promise<string> {
    await ensureDirectory(this.#fileSystem, this.#path);
    const path = join(this.#path, `${logId}-${segment}-${offset}.${kind}`);
    const { target, isNew } = await this.#createOrOpen(path);
    try {
      await copy(file, target, { offset, end });
      await target.sync();
    } finally {
      await target.close();
    }
    await this.#fileSystem.syncDirectory(this.#path);
    if (isNew) this.#files = add(this.#files, { name: path, bytes: end - offset });
    else await this.#count();
    return path;
  }

  async #createOrOpen(path: string): Promise<{ target: SpoolFile; isNew: boolean }> {
    try {
      return { target: await this.#fileSystem.create(path), isNew: true };
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
    return { target: await this.#fileSystem.open(path), isNew: false };
  }

  async #count(): Promise<void> {
    const entries = await this.#list();
    const none = { count: 0, totalBytes: 0, recordCount: 0 };
    this.#files = entries.filter((entry) => !entry.isDirectory).reduce(add, none);
  }

  async #list(): Promise<SpoolEntry[]> {
    try {
      return await this.#fileSystem.list(this.#path);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      throw error;
    }
  }
}

function add(files: FailedFiles, { name, bytes }: Pick<SpoolEntry, "name" | "bytes">): FailedFiles {
  return {
    count: files.count + 1,
    totalBytes: files.totalBytes + bytes,
    recordCount: files.recordCount + (name.endsWith(".record") ? 1 : 0),
  };
}

async function copy(
  source: SpoolFile,
  target: SpoolFile,
  { offset, end }: { readonly offset: number; readonly end: number },
): Promise<void> {
  const buffer = new Uint8Array(Math.min(COPY_BYTES, end - offset));
  for (let at = offset; at < end;) {
    const count = await source.read(buffer.subarray(0, end - at), at);
    if (count === 0) return;
    await writeAll(target, buffer.subarray(0, count), at - offset);
    at += count;
  }
}
