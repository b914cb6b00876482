import type { ConformanceCase } from "./case.ts";
import type { TranscriptEntry } from "./harness/transcript.ts";

/** What became of a case. */
export type Status = "pass" | "fail" | "skip" | "error";

/** What became of one case, and why. */
export interface CaseResult {
  /** The case. */
  readonly case: ConformanceCase;
  /**
   * `fail` says that a requirement does not hold; `error` that the target or the suite could not do its
   * part, so that nothing is known.
   */
  readonly status: Status;
  /** How long it took, in milliseconds. */
  readonly durationMs: number;
  /** Why it was skipped, or what went wrong. */
  readonly reason?: string;
  /** What should have been, where it failed. */
  readonly expected?: string;
  /** What was, where it failed. */
  readonly seen?: string;
  /** Whether it failed as the list of known failures says. */
  readonly known?: boolean;
  /** What an INFO case has found out. */
  readonly notes: readonly string[];
  /** What went over the wire and over HTTP, where it did not pass. */
  readonly transcript: readonly TranscriptEntry[];
  /** The last lines that the nodes wrote, where it did not pass. */
  readonly logs: readonly NodeLog[];
}

/** The end of a node's output. */
export interface NodeLog {
  /** The node. */
  readonly node: string;
  /** Its last lines. */
  readonly lines: readonly string[];
}

/** What became of a run. */
export interface RunReport {
  /** What was judged. */
  readonly target: string;
  /** When it began. */
  readonly startedAt: Date;
  /** How long it took, in milliseconds. */
  readonly durationMs: number;
  /** Every selected case, in the suite's order. */
  readonly results: readonly CaseResult[];
  /** Why it did not come to its end, if it did not. */
  readonly brokenOff?: string;
}

/** What has a part in a run's progress. */
export interface Progress {
  /** How many cases there are in all. */
  readonly total: number;
  /** How many are done. */
  readonly done: number;
  /** The result that has come just now. */
  readonly result: CaseResult;
}

/** How many results of each status there are. */
export function countByStatus(results: readonly CaseResult[]): Record<Status, number> {
  const counts = { pass: 0, fail: 0, skip: 0, error: 0 };
  for (const { status } of results) counts[status]++;
  return counts;
}
