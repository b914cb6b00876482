/**
 * What cleans up after a program that was killed.
 *
 * @module
 */

import { spawn } from "node:child_process";
import { once } from "node:events";

/**
 * Reads the process number of the server, anew after each start and 0 while there is none, until
 * "stopped" says that nothing is left to do. Where the input ends without that, whoever started it
 * is gone: it stops the server and removes the directory, again while something still writes there.
 */
const SCRIPT = `
directory=$1
server=0
while read -r word; do
  [ "$word" = stopped ] && exit
  server=$word
done
if [ "$server" -gt 0 ] && kill -INT "$server"; then
  attempt=0
  while kill -0 "$server" && [ $attempt -lt 100 ]; do
    attempt=$((attempt + 1))
    sleep 0.1
  done
fi
for attempt in 1 2 3 4 5; do
  rm -rf "$directory"
  sleep 1
  [ -e "$directory" ] || exit
done
`;

/** A process that waits for the end of this one. */
export interface Guard {
  /** Says which server to stop: its process number, or undefined while there is none. */
  watch(pid: number | undefined): void;
  /** Ends it, when server and directory are gone. */
  dismiss(): Promise<void>;
}

/**
 * Starts a process that removes `directory`, and stops a server there, once this process has ended
 * without dismissing it: killed, crashed or simply done.
 */
export function startGuard(directory: string): Guard {
  const child = spawn("/bin/sh", ["-c", SCRIPT, "sh", directory], {
    // Its own session: a Ctrl-C at the terminal does not reach it.
    detached: true,
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  const closed = once(child, "close");
  // Without a guard everything still works; who is told of an error here could do nothing.
  closed.catch(() => {});
  child.stdin.on("error", () => {});
  return {
    watch(pid = 0) {
      child.stdin.write(`${pid}\n`);
    },
    async dismiss() {
      child.stdin.end("stopped\n");
      await closed;
    },
  };
}
