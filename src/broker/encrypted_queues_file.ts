import { join } from "node:path";
import { codeOf } from "./spool/errors.ts";
import { type SpoolFile, type SpoolFileSystem, writeAll } from "./spool/file_system.ts";
import type { EncryptedQueue } from "./store/store.ts";

/** Its name, in the directory of the spool. */
export const ENCRYPTED_QUEUES_FILE = "encrypted-queues.json";

/** More are not kept in the file; then it says that nothing is known. */
const COUNT_MAX = 1000;

/** Larger than anything that is written. */
const BYTES_MAX = 4 * 1024 * 1024;

/**
 * Remembers beyond the end of the process which queues were encrypted, so that one that starts while
 * PostgreSQL is away knows what it may spool. Where it cannot be read, nothing is known.
 */
export class EncryptedQueuesFile {
  readonly #fileSystem: SpoolFileSystem;
  readonly #directory: string;
  #written: string | undefined;

  /** @param directory The spool's, which exists, and is this process's alone. */
  constructor(fileSystem: SpoolFileSystem, directory: string) {
    this.#fileSystem = fileSystem;
    this.#directory = directory;
  }

  /** What it says; undefined where there is nothing that can be used. Rejects where the disk fails. */
  async read(): Promise<readonly EncryptedQueue[] | undefined> {
    const file = await this.#open();
    if (file === undefined) return undefined;
    try {
      this.#written = await readText(file);
    } finally {
      await file.close();
    }
    return parse(this.#written);
  }

  /** Writes what is known, if that is something new. Rejects where the disk fails. */
  async write(queues: readonly EncryptedQueue[] | undefined): Promise<void> {
    const isKept = queues !== undefined && queues.length <= COUNT_MAX;
    const text = isKept
      ? JSON.stringify(queues.map(({ tenant, queue }) => ({ tenant, queue })))
      : "null";
    if (text === this.#written) return;
    this.#written = undefined;
    const file = await this.#open() ?? await this.#fileSystem.create(this.#path);
    try {
      // Until all of it is there it is no JSON.
      await file.truncate(0);
      await writeAll(file, new TextEncoder().encode(text), 0);
      await file.sync();
    } finally {
      await file.close();
    }
    await this.#fileSystem.syncDirectory(this.#directory);
    this.#written = text;
  }

  get #path(): string {
    return join(this.#directory, ENCRYPTED_QUEUES_FILE);
  }

  async #open(): Promise<SpoolFile | undefined> {
    try {
      return await this.#fileSystem.open(this.#path);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
  }
}

async function readText(file: SpoolFile): Promise<string> {
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(64 * 1024);
  let text = "";
  for (let position = 0; position < BYTES_MAX;) {
    const count = await file.read(buffer, position);
    if (count === 0) break;
    position += count;
    text += decoder.decode(buffer.subarray(0, count), { stream: true });
  }
  return text;
}

function parse(text: string): readonly EncryptedQueue[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return Array.isArray(value) && value.every(isQueue) ? value : undefined;
}

function isQueue(value: unknown): value is EncryptedQueue {
  if (typeof value !== "object" || value === null) return false;
  const { tenant, queue } = value as Partial<Record<string, unknown>>;
  return typeof tenant === "string" && typeof queue === "string";
}
