import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, type WriteStream } from "node:fs";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import type { Guard } from "../../src/cli/guard.ts";

/** How a process ended. */
export interface ProcessEnd {
  /** Its exit code, or null where a signal ended it. */
  readonly code: number | null;
  /** The signal that ended it, or null. */
  readonly signal: string | null;
  /** Why it could not be started, if it could not. */
  readonly error?: string;
}

/** What a {@linkcode NodeProcess} runs. */
export interface NodeProcessOptions {
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** Its working directory. */
  readonly cwd: string;
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Where to keep its output as a file, if anywhere. */
  readonly logFile?: string | undefined;
  /** Ends it where this process is killed before it could. */
  readonly guard: Guard;
}

/** How long a node gets to stop before it is killed, in milliseconds. */
const STOP_MS_MAX = 10_000;

/** How many lines of output are kept. */
const LINES_MAX = 200;

/** How many characters of one line are kept. */
const LINE_CHARS_MAX = 2000;

/**
 * One node as a process of its own, in a process group of its own: a command that is a wrapper, and
 * leaves its child behind, leaves nothing.
 */
export class NodeProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<ProcessEnd>;
  readonly #lines: string[] = [];
  #partial = "";
  #end: ProcessEnd | undefined;

  /** Starts it. */
  constructor({ command, cwd, env, logFile, guard }: NodeProcessOptions) {
    const [program = "", ...args] = command;
    this.#child = spawn(program, args, {
      cwd,
      env: { ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const { pid } = this.#child;
    if (pid !== undefined) guard.watch(-pid);
    const log = logFile === undefined ? undefined : createWriteStream(logFile, { flags: "a" });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => this.#take(text, log));
    }
    this.#ended = new Promise((resolve) => {
      const end = (how: ProcessEnd) => {
        if (this.#end) return;
        this.#end = how;
        // Whatever it has left of its group.
        this.#signal("SIGKILL");
        if (pid !== undefined) guard.forget(-pid);
        log?.end();
        resolve(how);
      };
      this.#child.once("error", (error) => end({ code: null, signal: null, error: error.message }));
      // Not "close": a child of its own may hold its output open.
      this.#child.once("exit", (code, signal) => end({ code, signal }));
    });
  }

  /** How it ended; undefined while it runs. */
  get end(): ProcessEnd | undefined {
    return this.#end;
  }

  /** Resolves when it has ended. */
  get ended(): Promise<ProcessEnd> {
    return this.#ended;
  }

  /** Ends it at once, as a crash would. */
  async kill(): Promise<void> {
    if (!this.#end) this.#signal("SIGKILL");
    await this.#ended;
  }

  /** Asks it to stop; kills it where it takes more than ten seconds. */
  async stop(): Promise<void> {
    if (this.#end) return;
    this.#signal("SIGTERM");
    const waiting = new AbortController();
    const late = delay(STOP_MS_MAX, undefined, { signal: waiting.signal })
      .then(() => this.#signal("SIGKILL"), () => {/* It stopped in time. */});
    await this.#ended;
    waiting.abort();
    await late;
  }

  /** The last lines that it wrote. */
  logTail(count: number): string[] {
    const lines = this.#partial === "" ? this.#lines : [...this.#lines, this.#partial];
    return lines.slice(-count);
  }

  #take(text: string, log: WriteStream | undefined): void {
    log?.write(text);
    const lines = (this.#partial + text).split("\n");
    this.#partial = lines.pop()!.slice(0, LINE_CHARS_MAX);
    this.#lines.push(...lines.map((line) => line.slice(0, LINE_CHARS_MAX)));
    if (this.#lines.length > LINES_MAX) this.#lines.splice(0, this.#lines.length - LINES_MAX);
  }

  /** To the whole group. */
  #signal(signal: "SIGTERM" | "SIGKILL"): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      // There is nothing left of it.
      if ((error as { code?: unknown }).code !== "ESRCH") throw error;
    }
  }
}

/** A process's end in words. */
export function describeEnd(end: ProcessEnd): string {
  if (end.error !== undefined) return `could not be started: ${end.error}`;
  return end.signal === null ? `ended with code ${end.code}` : `was ended by ${end.signal}`;
}
