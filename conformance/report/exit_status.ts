import type { RunReport } from "../result.ts";

/** What a run's exit status says. */
export const EXIT = {
  /** Every selected requirement holds. */
  conformant: 0,
  /** A requirement failed that is not on the list of known failures. */
  failed: 1,
  /** Wrong usage, or nothing was judged. */
  usage: 2,
  /** The suite or the target could not do its part. */
  error: 3,
} as const;

/** The exit status of a run: that it could not be judged in full weighs most. */
export function exitStatus({ results, brokenOff }: RunReport): number {
  if (brokenOff !== undefined || results.some(({ status }) => status === "error")) {
    return EXIT.error;
  }
  const failed = results.some((result) => result.status === "fail" && !result.known);
  if (failed) return EXIT.failed;
  return results.some(({ status }) => status !== "skip") ? EXIT.conformant : EXIT.usage;
}
