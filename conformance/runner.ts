import { type Capability, type ConformanceCase, whyUnfit } from "./case.ts";
import { CaseContext } from "./context.ts";
import { Failure, HarnessError } from "./harness/failure.ts";
import { TargetError, type TargetNode } from "./harness/target_node.ts";
import { Transcript } from "./harness/transcript.ts";
import type { CaseResult, NodeLog, Progress } from "./result.ts";
import type { Stage } from "./stage.ts";

/** Starts what a group of cases needs. */
export type StageOpener = (
  topology: string,
  signal: AbortSignal,
  transcript: Transcript,
) => Promise<Stage>;

/** What a run is made of. */
export interface RunnerOptions {
  /** The cases, in the suite's order. */
  readonly cases: readonly ConformanceCase[];
  /** What the target has. */
  readonly capabilities: ReadonlySet<Capability>;
  /** Starts stages. */
  readonly openStage: StageOpener;
  /** Why a case cannot be judged here, if it cannot, beside what it needs of the target. */
  readonly skipReason?: (each: ConformanceCase) => string | undefined;
  /** Puts cases into groups that share a stage; by topology where it is left out. */
  readonly groupOf?: (each: ConformanceCase) => string;
  /** The ids of cases that are known to fail. */
  readonly knownFailing?: ReadonlySet<string>;
  /** By what all deadlines are multiplied. */
  readonly scale: number;
  /** How many stages run at a time. */
  readonly concurrency: number;
  /** Breaks the run off. */
  readonly signal: AbortSignal;
  /** Told of each result as it comes. */
  readonly onProgress?: (progress: Progress) => void;
}

/** What came out of a run. */
export interface RunnerResult {
  /** A result for each case, in the order of the cases. */
  readonly results: CaseResult[];
  /** Why it did not come to its end, if it did not. */
  readonly brokenOff?: string;
}

/** How long a case may take, in milliseconds, before scaling. */
const CASE_MS_MAX = 30_000;

/** After this many ends or silences of the target, the rest of a stage's cases is not tried. */
const DEATHS_MAX = 2;

/**
 * Judges cases: those that share a topology one after the other on one stage, several stages side by
 * side. A stage whose case did not pass is started anew, so that no case suffers from another.
 */
export async function runCases(options: RunnerOptions): Promise<RunnerResult> {
  return await new Runner(options).run();
}

class Runner {
  readonly #options: RunnerOptions;
  readonly #results = new Map<ConformanceCase, CaseResult>();
  /** Aborted where going on makes no sense. */
  readonly #breaking = new AbortController();
  readonly #signal: AbortSignal;
  #hasEverStarted = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#signal = AbortSignal.any([options.signal, this.#breaking.signal]);
  }

  async run(): Promise<RunnerResult> {
    const { cases, concurrency } = this.#options;
    const groups = this.#groups();
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        for (let next = groups.shift(); next; next = groups.shift()) await this.#runGroup(next);
      }),
    );
    return {
      results: cases.map((each) => this.#results.get(each)!),
      ...(this.#signal.aborted ? { brokenOff: reasonOf(this.#signal) } : {}),
    };
  }

  /** The cases that can be judged, by stage; the others are skipped here. */
  #groups(): ConformanceCase[][] {
    const { cases, capabilities, skipReason, groupOf = ({ topology }) => topology } = this.#options;
    const groups = new Map<string, ConformanceCase[]>();
    for (const each of cases) {
      const reason = whyUnfit(each, capabilities) ?? skipReason?.(each);
      if (reason !== undefined) {
        this.#settle({ ...blank(each), status: "skip", reason });
        continue;
      }
      const group = groups.get(groupOf(each));
      if (group) group.push(each);
      else groups.set(groupOf(each), [each]);
    }
    return [...groups.values()];
  }

  async #runGroup(cases: readonly ConformanceCase[]): Promise<void> {
    let stage: Stage | undefined;
    let deaths = 0;
    for (const each of cases) {
      if (this.#signal.aborted) {
        this.#settle({ ...blank(each), status: "skip", reason: "the run was broken off" });
        continue;
      }
      if (deaths >= DEATHS_MAX) {
        const reason = `not tried: the target has failed ${deaths} times in these cases`;
        this.#settle({ ...blank(each), status: "error", reason });
        continue;
      }
      try {
        stage ??= await this.#open(each);
      } catch (error) {
        deaths++;
        const result = errorResult(blank(each), error);
        this.#settle(result);
        if (!this.#hasEverStarted) this.#breaking.abort(new HarnessError(result.reason!));
        continue;
      }
      const { result, isSpent } = await this.#runCase(each, stage);
      this.#settle(result);
      if (result.status === "error") deaths++;
      if (isSpent) {
        await this.#close(stage);
        stage = undefined;
      }
    }
    if (stage) await this.#close(stage);
  }

  async #open({ topology }: ConformanceCase): Promise<Stage> {
    const transcript = new Transcript();
    const stage = await this.#options.openStage(topology, this.#signal, transcript);
    if (stage.nodes.length > 0) this.#hasEverStarted = true;
    return stage;
  }

  async #close(stage: Stage): Promise<void> {
    stage.transcript = undefined;
    await stage.stop();
  }

  async #runCase(
    each: ConformanceCase,
    stage: Stage,
  ): Promise<{ result: CaseResult; isSpent: boolean }> {
    const { capabilities, scale } = this.#options;
    const deadlineMs = (each.timeoutMs ?? CASE_MS_MAX) * scale;
    const deadline = new AbortController();
    const timer = setTimeout(
      () => deadline.abort(new Failure(`the case to end within ${deadlineMs} ms`, "it had not")),
      deadlineMs,
    );
    const transcript = new Transcript();
    stage.transcript = transcript;
    const signal = AbortSignal.any([this.#signal, deadline.signal]);
    const context = new CaseContext({ stage, capabilities, scale, signal, transcript });
    let caught: { error: unknown } | undefined;
    try {
      await each.run(context);
    } catch (error) {
      caught = { error };
    } finally {
      clearTimeout(timer);
    }
    const judged = stage.nodes.filter((node) => !context.downOnPurpose.has(node));
    const died = await this.#findDead(judged, caught !== undefined);
    const base = {
      ...blank(each),
      durationMs: transcript.elapsedMs,
      notes: context.notes,
    };
    // Before anything is closed, so that it says what was and not what comes of the closing.
    const entries = transcript.entries();
    const logs = stage.nodes.map((node) => ({ node: node.name, lines: node.logTail() }));
    context.close();
    await stage.reset();
    const result = this.#judge(base, died ?? caught, died !== undefined);
    const passed = result.status === "pass";
    return {
      result: passed ? result : { ...result, transcript: entries, logs: merged(result.logs, logs) },
      isSpent: !passed || context.downOnPurpose.size > 0,
    };
  }

  /** A node that has ended, or, where something went wrong, does not answer any more. */
  async #findDead(
    nodes: readonly TargetNode[],
    askThem: boolean,
  ): Promise<{ error: unknown } | undefined> {
    if (this.#signal.aborted) return undefined;
    for (const node of nodes) {
      if (!askThem && node.isRunning) continue;
      try {
        await node.expectReady(this.#signal);
      } catch (error) {
        return { error };
      }
    }
    return undefined;
  }

  #judge(
    base: CaseResult,
    caught: { error: unknown } | undefined,
    hasDied: boolean,
  ): CaseResult {
    if (this.#signal.aborted && caught) {
      return { ...base, status: "skip", reason: "the run was broken off" };
    }
    const isKnown = this.#options.knownFailing?.has(base.case.id) ?? false;
    if (!caught) {
      if (!isKnown) return { ...base, status: "pass" };
      const reason = "it is listed as known to fail, and passed: take it off the list";
      return { ...base, status: "error", reason };
    }
    const { error } = caught;
    if (hasDied || !(error instanceof Failure)) return errorResult(base, error);
    if (base.case.level === "info") {
      return { ...base, status: "pass", notes: [...base.notes, error.message] };
    }
    const { expected, seen } = error;
    return { ...base, status: "fail", expected, seen, ...(isKnown ? { known: true } : {}) };
  }

  #settle(result: CaseResult): void {
    this.#results.set(result.case, result);
    const { cases, onProgress } = this.#options;
    onProgress?.({ total: cases.length, done: this.#results.size, result });
  }
}

function blank(each: ConformanceCase): CaseResult {
  return { case: each, status: "skip", durationMs: 0, notes: [], transcript: [], logs: [] };
}

function errorResult(base: CaseResult, error: unknown): CaseResult {
  const reason = error instanceof HarnessError ? error.message : detailOf(error);
  const logs = error instanceof TargetError ? [{ node: "", lines: error.logTail }] : [];
  return { ...base, status: "error", reason, logs };
}

/** What the suite itself did wrong: with the place. */
function detailOf(error: unknown): string {
  return error instanceof Error ? error.stack ?? error.message : String(error);
}

function merged(own: readonly NodeLog[], others: readonly NodeLog[]): NodeLog[] {
  const logs = others.filter(({ lines }) => lines.length > 0);
  return logs.length > 0 ? logs : [...own];
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : String(reason);
}
