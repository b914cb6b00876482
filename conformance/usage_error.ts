/** The command line, or a file that it names, cannot be used. */
export class UsageError extends Error {
  /** The error's name. */
  override readonly name = "UsageError";
}
