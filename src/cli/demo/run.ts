import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { inspect } from "node:util";
import type { Network } from "../../mesh/runtime.ts";
import { playActs, type RoundCounts } from "./acts.ts";
import { Cleanup } from "./cleanup.ts";
import { openDatabase } from "./database.ts";
import { DemoFailure, Interrupted } from "./failure.ts";
import { formatMs } from "./format.ts";
import { Guard } from "../guard.ts";
import { watchInterrupts } from "./interrupts.ts";
import { explainKept } from "./keep.ts";
import { describeEnd, type ReplicaProcess } from "./replica_process.ts";
import type { Stage } from "./stage.ts";
import { Terminal } from "./terminal.ts";

/** What to show, and for how long. */
export interface DemoOptions extends RoundCounts {
  /** Leaves everything running at the end, until a signal comes. */
  readonly keep: boolean;
  /** For finding free ports. */
  readonly network: Network;
}

/** What the demo has come to. */
interface Run {
  readonly options: DemoOptions;
  readonly terminal: Terminal;
  readonly stop: AbortController;
  readonly cleanup: Cleanup;
  readonly processes: ReplicaProcess[];
  /** By the clock of this process, in milliseconds. */
  readonly beganAt: number;
  /** Everything has happened, and is left running. */
  isKept: boolean;
}

/**
 * Runs the demo on this process's standard output and cleans up after it.
 *
 * @returns The exit code: 0 where everything that is claimed has happened, 1 where something has not,
 * 128 and the signal's number where a signal ended it early.
 */
export async function runDemo(options: DemoOptions): Promise<number> {
  const run: Run = {
    options,
    terminal: new Terminal({
      output: process.stdout,
      env: process.env,
      now: () => performance.now(),
    }),
    stop: new AbortController(),
    cleanup: new Cleanup(),
    processes: [],
    beganAt: performance.now(),
    isKept: false,
  };
  const unwatch = watchInterrupts((reason) => run.stop.abort(reason));
  const failures = await play(run).then(() => [], (error: unknown) => [error]);
  if (failures.some(isFailure)) await showLogs(run);
  const leftovers = await run.cleanup.run();
  unwatch();
  return conclude(run, [...failures, ...leftovers]);
}

async function play(run: Run): Promise<void> {
  const { options, terminal, stop } = run;
  terminal.heading("Three replicas on one PostgreSQL, and what the mesh does for them");
  const stage = await setStage(run);
  const replicas = await playActs(stage, options);
  if (!options.keep) return;
  run.isKept = true;
  terminal.heading(summarize(run));
  explainKept(stage, replicas);
  await new Promise((resolve) => {
    if (stop.signal.aborted) resolve(undefined);
    else stop.signal.addEventListener("abort", resolve, { once: true });
  });
}

async function setStage(run: Run): Promise<Stage> {
  const { options, terminal, stop, cleanup, processes } = run;
  const directory = await mkdtemp(join(tmpdir(), "queen-mesh-demo-"));
  const guard = new Guard(directory);
  cleanup.add(() => guard.dismiss());
  cleanup.add(() => rm(directory, { recursive: true, force: true }));
  const fail = (reason: Error) => stop.abort(reason);
  const { url } = await terminal.step(
    "a database",
    () => openDatabase(cleanup),
    ({ description }) => description,
  );
  stop.signal.throwIfAborted();
  return {
    terminal,
    signal: stop.signal,
    fail,
    cleanup,
    guard,
    directory,
    network: options.network,
    databaseUrl: url,
    processes,
    onLost(name, end) {
      const text = `${name} is gone: ${describeEnd(end)}`;
      if (run.isKept) terminal.note(text);
      else fail(new DemoFailure(text));
    },
  };
}

function isFailure(error: unknown): boolean {
  return !(error instanceof Interrupted);
}

async function showLogs({ terminal, processes }: Run): Promise<void> {
  for (const each of processes) {
    terminal.heading(`The end of the log of ${each.name}`);
    for (const line of await each.logTail()) terminal.note(line);
  }
}

function conclude(run: Run, errors: readonly unknown[]): number {
  const { terminal } = run;
  const failures = errors.filter(isFailure);
  if (failures.length > 0) terminal.heading("Not everything happened as claimed:");
  for (const failure of failures) {
    const text = failure instanceof DemoFailure ? failure.message : inspect(failure);
    for (const line of text.split("\n")) terminal.alarm(line);
  }
  if (failures.length > 0) return 1;
  const interrupt = errors.find((error) => error instanceof Interrupted);
  if (interrupt !== undefined) {
    terminal.heading(`Stopped early, ${interrupt.message}. Nothing is left behind.`);
    return 128 + interrupt.signalNumber;
  }
  terminal.heading(run.isKept ? "Stopped. Nothing is left behind." : summarize(run));
  return 0;
}

function summarize({ beganAt }: Run): string {
  return `All of it happened, in ${formatMs(performance.now() - beganAt)}.`;
}
