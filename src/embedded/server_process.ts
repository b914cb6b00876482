/**
 * One run of the PostgreSQL server as a child process.
 *
 * @module
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import type { Account } from "./account.ts";

/** What {@linkcode runToEnd} and {@linkcode startServer} run. */
export interface Command {
  /** The path of the executable. */
  readonly program: string;
  /** Its arguments. */
  readonly args: readonly string[];
  /** The account to run under; this process's own where it is undefined. */
  readonly account: Account | undefined;
}

/** A running server. */
export interface ServerProcess {
  /** The postmaster's process number. */
  readonly pid: number;
  /** Resolves once it has ended and its log has been read to the end. */
  readonly ended: Promise<void>;
  /** Asks it to end: at once, as a crash would, where `immediately` is set. */
  end(options?: { readonly immediately?: boolean }): void;
}

/** PostgreSQL did not start. `output` holds what it wrote. */
export class ServerStartError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "ServerStartError";
  /** What it wrote to its log. */
  readonly output: string;

  /** Quotes the last lines of the output. */
  constructor(program: string, output: string) {
    super(`${program} failed: ${output.trim().split("\n").slice(-3).join(" | ")}`);
    this.output = output;
  }
}

/**
 * Runs a program to its end.
 *
 * @throws {ServerStartError} If it fails.
 */
export async function runToEnd(command: Command): Promise<void> {
  const child = launch(command);
  const output = collect(child);
  const [code] = await closed(child);
  if (code !== 0) throw new ServerStartError(command.program, output());
}

/**
 * Starts the server and resolves once it takes connections.
 *
 * @throws {ServerStartError} If it ends instead.
 */
export async function startServer(command: Command): Promise<ServerProcess> {
  const child = launch(command);
  const output = collect(child);
  const ended = closed(child).then(() => {});
  await Promise.race([ready(child, output), ended]);
  if (!output().includes(READY)) throw new ServerStartError(command.program, output());
  return {
    pid: child.pid!,
    ended,
    end({ immediately = false } = {}) {
      // Not by the child's own method, which under Deno sends one signal and no second one.
      if (child.exitCode !== null || child.signalCode !== null) return;
      process.kill(child.pid!, immediately ? "SIGQUIT" : "SIGINT");
    },
  };
}

const READY = "database system is ready to accept connections";

function launch({ program, args, account }: Command): ChildProcess {
  return spawn(program, args, {
    ...account,
    // Its own session: a Ctrl-C at the terminal reaches whoever started it, and not the server.
    detached: true,
    // The account may have no right to be in the present directory.
    cwd: "/",
    // Messages are read, so they must be in English.
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Reads what the child writes, so that it is never held up, and keeps the last of it. */
function collect(child: ChildProcess): () => string {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-16_384);
    });
  }
  return () => output;
}

function ready(child: ChildProcess, output: () => string): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!output().includes(READY)) return;
      child.stderr?.off("data", look);
      resolve();
    };
    child.stderr?.on("data", look);
  });
}

async function closed(child: ChildProcess): Promise<readonly [number | null]> {
  // Rejects on "error": the program could not be run at all.
  const [code] = await once(child, "close");
  return [code];
}
