/** How a spool is doing. */
export interface SpoolStats {
  /** Records that wait to be drained, locked ones included. */
  readonly pendingCount: number;
  /** Records among them that are sealed with another key. */
  readonly lockedCount: number;
  /** Records in the failed folder. */
  readonly failedCount: number;
  /** All files in the failed folder: those records, and damaged stretches. */
  readonly failedFiles: {
    /** How many. */
    readonly count: number;
    /** Their sizes together, in bytes. */
    readonly totalBytes: number;
  };
  /** What counts towards the limit: segments, what waits to be written, the failed folder. */
  readonly bytes: number;
  /** The limit, in bytes. */
  readonly bytesMax: number;
  /** How long the oldest record has waited, in milliseconds, or a little less; undefined if none. */
  readonly oldestAgeMs: number | undefined;
  /** Whether the files could be written, and read, the last time. */
  readonly isHealthy: boolean;
  /** What the file system said, where it could not. */
  readonly lastError: string | undefined;
  /** What the sink said, where the last attempt to drain failed. */
  readonly sinkError: string | undefined;
}
