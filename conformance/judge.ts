import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Guard } from "../src/cli/guard.ts";
import type { ConformanceCase } from "./case.ts";
import { DatabaseServer } from "./harness/database.ts";
import type { Progress, RunReport } from "./result.ts";
import { runCases } from "./runner.ts";
import { OwnStage } from "./stage.ts";
import { CASES } from "./suite.ts";
import type { Target } from "./target.ts";
import { topologyNamed } from "./topologies.ts";

/** How a target is judged. */
export interface JudgeOptions {
  /** The cases; all of them where it is left out. */
  readonly cases?: readonly ConformanceCase[];
  /** The PostgreSQL server on which databases are made; an embedded one where it is left out. */
  readonly databaseUrl?: string | undefined;
  /** The ids of cases that are known to fail. */
  readonly knownFailing?: ReadonlySet<string>;
  /** By what all deadlines are multiplied; 1 where it is left out. */
  readonly scale?: number;
  /** How many topologies run at a time; 4 where it is left out. */
  readonly concurrency?: number;
  /** A directory in which the nodes' output is kept. */
  readonly keepLogs?: string | undefined;
  /** Breaks the run off; its report is whole all the same. */
  readonly signal?: AbortSignal;
  /** Told of each result as it comes. */
  readonly onProgress?: (progress: Progress) => void;
}

/**
 * Starts nodes of a target, judges them, and stops them. Nothing of it is left when this resolves, or
 * a moment after this process has been killed.
 */
export async function judge(target: Target, options: JudgeOptions = {}): Promise<RunReport> {
  const { cases = CASES, scale = 1, concurrency = 4, keepLogs, knownFailing, onProgress } = options;
  const { databaseUrl, signal = new AbortController().signal } = options;
  const startedAt = new Date();
  const begunAt = performance.now();
  const directory = await mkdtemp(join(tmpdir(), "queen-conformance-"));
  const guard = new Guard(directory);
  const databases = new DatabaseServer(databaseUrl);
  const secret = randomBytes(16).toString("base64url");
  try {
    const { results, brokenOff } = await runCases({
      cases,
      capabilities: target.capabilities,
      openStage: (name, signal, transcript) =>
        OwnStage.start(
          topologyNamed(name),
          { target, databases, secret, scale, keepLogs, guard, directory },
          signal,
          transcript,
        ),
      ...(knownFailing ? { knownFailing } : {}),
      scale,
      concurrency,
      signal,
      ...(onProgress ? { onProgress } : {}),
    });
    return {
      target: target.name,
      startedAt,
      durationMs: performance.now() - begunAt,
      results,
      ...(brokenOff === undefined ? {} : { brokenOff }),
    };
  } finally {
    await databases.stop();
    await guard.dismiss();
    await rm(directory, { recursive: true, force: true });
  }
}
