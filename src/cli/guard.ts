import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/**
 * Reads standard input. When it ends, the demo is gone without having cleaned up: so it ends the
 * processes that it was told of and removes the directory. A word dismisses it.
 */
const SCRIPT = `
directory=$1
watched=
while read -r word pid; do
  case $word in
    watch) watched="$watched $pid" ;;
    forget)
      left=
      for each in $watched; do [ "$each" = "$pid" ] || left="$left $each"; done
      watched=$left
      ;;
    dismiss) exit ;;
  esac
done
[ -z "$watched" ] || kill -KILL $watched
rm -rf "$directory"
`;

/**
 * Sees to it that nothing is left where the demo is killed: a small process that outlives it by a
 * moment.
 */
export class Guard {
  readonly #child: ChildProcess;

  /** Starts it for a directory. */
  constructor(directory: string) {
    this.#child = spawn("/bin/sh", ["-c", SCRIPT, "sh", directory], {
      stdio: ["pipe", "ignore", "ignore"],
      // Its own session: what a terminal sends to the demo does not reach it.
      detached: true,
      cwd: "/",
    });
    // Without it the demo still works, and only a demo that is killed leaves something behind.
    this.#child.once("error", () => {});
    this.#child.stdin?.once("error", () => {});
  }

  /** Ends this process where the demo does not. */
  watch(pid: number): void {
    this.#child.stdin?.write(`watch ${pid}\n`);
  }

  /** This process has ended by itself. */
  forget(pid: number): void {
    this.#child.stdin?.write(`forget ${pid}\n`);
  }

  /** All has been cleaned up. Resolves when the guard is gone. */
  async dismiss(): Promise<void> {
    if (this.#child.pid === undefined || this.#child.exitCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.stdin?.end("dismiss\n");
    await gone;
  }
}
