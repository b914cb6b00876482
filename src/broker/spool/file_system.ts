/**
 * What the spool asks of a file system.
 *
 * Errors carry the code of the operating system (`ENOENT`, `EEXIST`, `ENOSPC`, `EIO`) as `code`.
 *
 * @module
 */

/** An open file. At most one call at a time. */
export interface SpoolFile {
  /** Reads into `buffer` from `position` on; resolves to the count of bytes, 0 at the end. */
  read(buffer: Uint8Array, position: number): Promise<number>;
  /** Writes at `position` and resolves to how many bytes were taken, maybe fewer than given. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  /** Cuts the file to `length` bytes. */
  truncate(length: number): Promise<void>;
  /**
   * Resolves once all bytes written before the call, and the length, outlast a loss of power. The
   * file's entry in its directory is not part of that.
   */
  sync(): Promise<void>;
  /** Closes it. */
  close(): Promise<void>;
}

/** One entry of a directory. */
export interface SpoolEntry {
  /** Its name, without the directory's. */
  readonly name: string;
  /** Whether it is a directory itself. */
  readonly isDirectory: boolean;
  /** The size of a file, in bytes. */
  readonly bytes: number;
}

/** Directories and files, with the means to make them last. */
export interface SpoolFileSystem {
  /** Makes one directory, readable by its owner alone. Rejects with `EEXIST` where there is one. */
  makeDirectory(path: string): Promise<void>;
  /** The entries of a directory, in any order. */
  list(path: string): Promise<SpoolEntry[]>;
  /**
   * Makes a file, readable by its owner alone, and opens it to read and write. Rejects with `EEXIST`
   * where there is one.
   */
  create(path: string): Promise<SpoolFile>;
  /** Opens an existing file to read and write. */
  open(path: string): Promise<SpoolFile>;
  /** Removes a file. */
  remove(path: string): Promise<void>;
  /** Resolves once the directory's entries, as they were at the call, outlast a loss of power. */
  syncDirectory(path: string): Promise<void>;
}

/** Writes all of `bytes`, in as many calls as it takes. */
export async function writeAll(
  file: SpoolFile,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const count = await file.write(bytes.subarray(done), position + done);
    // A disk that takes nothing and reports nothing would make this loop endless.
    if (count === 0) throw new Error("The file system took none of the bytes and gave no reason");
    done += count;
  }
}
