import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** A process that has not ended by then is killed, in milliseconds. */
const LIFE_MS_MAX = 60_000;

const BIN = fileURLToPath(new URL("../bin.ts", import.meta.url));

/** How a process ended. */
export interface Ended {
  /** Its exit code, or null where a signal ended it. */
  readonly code: number | null;
  /** What it said on stderr. */
  readonly stderr: string;
  /** What it said on stdout. */
  readonly stdout: string;
}

/** The command as a process of its own. It is gone after the test, whatever happens. */
export class CommandProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ended: Promise<Ended>;
  #stdout = "";
  #stderr = "";

  /**
   * Starts it with these arguments, and these settings beside `PATH` and `HOME`. Its spool is gone
   * after it, unless the settings say where it lies.
   *
   * @param bundle What Node is to run; the program itself under Deno where it is left out.
   */
  constructor(
    args: readonly string[],
    settings: Readonly<Record<string, string>> = {},
    { bundle }: { readonly bundle?: string } = {},
  ) {
    const { PATH = "", HOME = "", DENO_DIR = "" } = process.env;
    const [program, ...first] = bundle === undefined
      ? [process.execPath, "run", "-A", "--frozen", "--cached-only", BIN]
      : ["node", bundle];
    const directory = mkdtempSync(join(tmpdir(), "queen-mesh-test-"));
    this.#child = spawn(program!, [...first, ...args], {
      env: {
        PATH,
        HOME,
        NO_COLOR: "1",
        ...(DENO_DIR === "" ? {} : { DENO_DIR }),
        FILE_BUFFER_DIR: join(directory, "spool"),
        ...settings,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child.stdout!.setEncoding("utf8").on("data", (text: string) => this.#stdout += text);
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => this.#stderr += text);
    const deadline = setTimeout(() => this.kill("SIGKILL"), LIFE_MS_MAX);
    this.#ended = once(this.#child, "close").then(([code]) => {
      clearTimeout(deadline);
      rmSync(directory, { recursive: true, force: true });
      return { code, stdout: this.#stdout, stderr: this.#stderr };
    });
  }

  /** Resolves once it has ended. */
  get ended(): Promise<Ended> {
    return this.#ended;
  }

  /** Sends it a signal. */
  kill(signal: NodeJS.Signals): void {
    // Not by the child's own method, which under Deno sends one signal and reports it as the end.
    if (this.#child.pid !== undefined) process.kill(this.#child.pid, signal);
  }

  /** Resolves to the first line of its log with this message. */
  async logged(message: string): Promise<Record<string, unknown>> {
    const stdout = this.#child.stdout!;
    for (;;) {
      const complete = this.#stdout.slice(0, this.#stdout.lastIndexOf("\n") + 1);
      for (const line of complete.split("\n").filter(Boolean)) {
        const entry = JSON.parse(line);
        if (entry.message === message) return entry;
      }
      const more = once(stdout, "data").then(() => true);
      const isAlive = await Promise.race([more, this.#ended.then(() => false)]);
      if (!isAlive) throw new Error(`it ended without logging "${message}": ${this.#stderr}`);
    }
  }

  /** Resolves to the first match in what it says on stdout. */
  async said(pattern: RegExp): Promise<RegExpMatchArray> {
    for (;;) {
      const match = this.#stdout.match(pattern);
      if (match) return match;
      const more = once(this.#child.stdout!, "data").then(() => true);
      const isAlive = await Promise.race([more, this.#ended.then(() => false)]);
      if (!isAlive) throw new Error(`it ended without saying ${pattern}: ${this.#stdout}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.kill("SIGKILL");
    await this.#ended;
  }
}
