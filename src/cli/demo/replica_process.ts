import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import type { Guard } from "../guard.ts";

/** How a process ended. */
export interface ProcessEnd {
  /** Its exit code, or null where a signal ended it. */
  readonly code: number | null;
  /** The signal that ended it, or null. */
  readonly signal: string | null;
}

/** What a {@linkcode ReplicaProcess} is made of. */
export interface ReplicaProcessOptions {
  /** What the demo calls it. */
  readonly name: string;
  /** Its settings, beside the ones that every process needs. */
  readonly settings: Readonly<Record<string, string>>;
  /** Its working directory, which also holds its log. */
  readonly directory: string;
  /** The program that has `serve`; the one that this process runs where it is left out. */
  readonly program?: string;
  /** Ends it where the demo cannot. */
  readonly guard: Guard;
  /** Told where it ends without having been asked to. */
  readonly onLost: (end: ProcessEnd) => void;
}

/** How long a replica gets to stop, in milliseconds. */
const STOP_MS_MAX = 8000;

/** How many lines of a log are shown. */
const TAIL_LINES = 12;

/** What the demo sets by itself, so that nothing of its own environment may get in between. */
const OWN_SETTINGS =
  /^(QUEEN_|POP_WAIT_|PG_|DB_|DATABASE_URL$|FILE_BUFFER_|DEFAULT_SUBSCRIPTION_MODE$|HOST$|PORT$)/;

/** One replica as a process of its own: `serve`, by the same program and on the same runtime. */
export class ReplicaProcess {
  /** What the demo calls it. */
  readonly name: string;
  readonly #options: ReplicaProcessOptions;
  readonly #logPath: string;
  #child: ChildProcess | undefined;
  #ended: Promise<ProcessEnd> | undefined;

  /** Starts nothing yet. */
  constructor(options: ReplicaProcessOptions) {
    this.name = options.name;
    this.#options = options;
    this.#logPath = join(options.directory, `${options.name}.log`);
  }

  /** Its process number, or undefined while it does not run. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts it; it serves a moment later. */
  start(): void {
    const { settings, directory, program = process.argv[1]!, guard, onLost } = this.#options;
    const log = openSync(this.#logPath, "a");
    // Deno reads these arguments as Node would, and runs the script with every permission.
    const child = spawn(process.execPath, [program, "serve"], {
      cwd: directory,
      env: { ...inheritedSettings(), ...settings },
      stdio: ["ignore", log, log],
      // Its own session: a Ctrl-C at the terminal reaches the demo alone, which then stops it.
      detached: true,
    });
    closeSync(log);
    const { pid } = child;
    if (pid !== undefined) guard.watch(pid);
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      const end = (how: ProcessEnd) => {
        if (pid !== undefined) guard.forget(pid);
        resolve(how);
        if (this.#child !== child) return;
        this.#child = undefined;
        onLost(how);
      };
      child.once("error", () => end({ code: null, signal: null }));
      child.once("exit", (code, signal) => end({ code, signal }));
    });
  }

  /** Ends it at once, as a crash would. Resolves when it is gone. */
  async kill(): Promise<void> {
    const child = this.#release();
    if (child) send(child, "SIGKILL");
    await this.#ended;
  }

  /**
   * Asks it to stop and resolves when it is gone, to undefined where it stopped as it should, else to
   * what it did instead. One that takes too long is killed.
   */
  async stop(): Promise<string | undefined> {
    const child = this.#release();
    if (!child) return undefined;
    send(child, "SIGTERM");
    const timeout = new AbortController();
    const late = delay(STOP_MS_MAX, undefined, { signal: timeout.signal })
      .then(() => send(child, "SIGKILL"), () => {/* It stopped in time. */});
    const end = await this.#ended;
    timeout.abort();
    await late;
    return end?.code === 0 ? undefined : `${this.name} did not stop cleanly: ${describeEnd(end)}`;
  }

  /** The last lines of its log. */
  async logTail(): Promise<string[]> {
    const text = await readFile(this.#logPath, "utf8").catch(() => "");
    return text.trimEnd().split("\n").slice(-TAIL_LINES);
  }

  /** Its end is expected from here on. */
  #release(): ChildProcess | undefined {
    const child = this.#child;
    this.#child = undefined;
    return child;
  }
}

/** A process's end in words. */
export function describeEnd(end: ProcessEnd | undefined): string {
  if (end?.signal) return `it ended by ${end.signal}`;
  return end?.code === null || end === undefined
    ? "it could not be started"
    : `it ended with code ${end.code}`;
}

/** Not by `child.kill`: with it, Deno reports every end as one by that signal. */
function send({ pid }: ChildProcess, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It has ended just now.
    if ((error as { code?: unknown }).code !== "ESRCH") throw error;
  }
}

function inheritedSettings(): Record<string, string> {
  const entries = Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || OWN_SETTINGS.test(name) ? [] : [[name, value] as const]
  );
  return Object.fromEntries(entries);
}
