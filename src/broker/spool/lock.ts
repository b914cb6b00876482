/** A spool that this process alone works on. */
export interface SpoolLock {
  /** Lets go of it. */
  release(): Promise<void>;
}

/**
 * Takes the lock of a spool. A crash of the process that holds it, of whatever kind, releases it.
 *
 * @param directory The spool's directory, which exists.
 * @throws {SpoolInUseError} where another process holds it.
 */
export type AcquireSpoolLock = (directory: string) => Promise<SpoolLock>;
