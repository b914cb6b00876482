/**
 * A PostgreSQL that hangs.
 *
 * @module
 */

import { execFile } from "node:child_process";
import process from "node:process";
import { promisify } from "node:util";

/** A server that has been stopped in its tracks. */
export interface PausedServer {
  /** Lets it go on. */
  resume(): void;
}

/**
 * Stops a server and all its sessions as they are (SIGSTOP): connections stay open, new ones are
 * taken by the kernel, and nothing is answered. `pid` is its main process.
 */
export async function pauseServer(pid: number): Promise<PausedServer> {
  // The main process first: it starts no session any more.
  process.kill(pid, "SIGSTOP");
  const pids = [pid, ...await childrenOf(pid)];
  for (const each of pids) signal(each, "SIGSTOP");
  return {
    resume() {
      for (const each of pids) signal(each, "SIGCONT");
    },
  };
}

/** A session may have ended meanwhile; the others need the signal all the same. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pid=,ppid="]);
  return stdout.trim().split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .filter(([, parent]) => parent === pid)
    .map(([child]) => child!);
}
