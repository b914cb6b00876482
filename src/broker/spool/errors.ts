/**
 * The errors of the spool that a caller catches.
 *
 * @module
 */

/**
 * Why the spool takes nothing: it is at its limit, the disk refuses, records of the partition wait for
 * another key, or it was closed.
 */
export type SpoolRefusal = "full" | "disk" | "locked" | "closed";

/** The spool did not take the records; nothing was acknowledged. The caller answers 503. */
export class SpoolUnavailableError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "SpoolUnavailableError";
  /** Why. */
  readonly reason: SpoolRefusal;

  /** Says what happened; `cause` holds what the file system said. */
  constructor(
    message: string,
    { reason, cause }: { readonly reason: SpoolRefusal; readonly cause?: unknown },
  ) {
    super(message, cause === undefined ? {} : { cause });
    this.reason = reason;
  }
}

/**
 * A sink's word that the records themselves are at fault (SQLSTATE class 22 or 23), so that another
 * attempt with the same records is pointless. Every other error of a sink means: not now.
 */
export class RefusedRecordsError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "RefusedRecordsError";
}

/** Another process works on this spool. */
export class SpoolInUseError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "SpoolInUseError";
}

/** What an error says, for a log or a status. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The code of a file system's error, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
