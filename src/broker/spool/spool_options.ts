import type { Clock, Logger, Random } from "../../mesh/runtime.ts";
import type { Cipher } from "./cipher.ts";
import type { SpoolFileSystem } from "./file_system.ts";
import type { AcquireSpoolLock } from "./lock.ts";
import type { SpoolSink } from "./sink.ts";

/** What a spool takes at most, where nothing else is said: 1 GiB. */
export const SPOOL_BYTES_MAX = 1024 ** 3;

/** What a spool is made of. */
export interface SpoolOptions {
  /** Its directory; it is made where it is missing. */
  readonly directory: string;
  /** Where the directory lies. */
  readonly fileSystem: SpoolFileSystem;
  /** Keeps other processes out. */
  readonly acquireLock: AcquireSpoolLock;
  /** Where the records drain to. */
  readonly sink: SpoolSink;
  /** Seals every record that is appended. Without one, records lie in the files as they are. */
  readonly cipher?: Cipher;
  /**
   * Nothing drains while this is true, so it must be true for as long as it is not known. Call
   * {@linkcode Spool.wake} when it changes.
   */
  readonly paused: () => boolean;
  /** The files' sizes together, those of the failed folder included, in bytes; 1 GiB by default. */
  readonly bytesMax?: number;
  /** A segment that would grow beyond this, in bytes, is followed by another; 16 MiB by default. */
  readonly segmentBytesMax?: number;
  /** At most so many records drain at a time; 500 by default. */
  readonly batchRecordsMax?: number;
  /** At most so many bytes drain at a time, or one record if that is more; 4 MiB by default. */
  readonly batchBytesMax?: number;
  /** Time. */
  readonly clock: Clock;
  /** Milliseconds since 1970, for the age of the oldest record. */
  readonly wallClock: () => number;
  /** For ids and jitter. */
  readonly random: Random;
  /** Where trouble is reported. */
  readonly logger: Logger;
}
