import process from "node:process";
import { Interrupted } from "./failure.ts";

/** What asks a program to end, and its number. */
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

/** The number of SIGPIPE: nobody reads the output any more. */
const SIGPIPE = 13;

/**
 * Tells of every signal that asks this process to end, which then does not end by itself, and of the
 * end of whoever read its output.
 *
 * @returns Ends the watch over the signals.
 */
export function watchInterrupts(onInterrupt: (reason: Interrupted) => void): () => void {
  const listeners = Object.entries(SIGNALS).map(([name, number]) => {
    const listener = () => onInterrupt(new Interrupted(name, number));
    process.on(name, listener);
    return [name, listener] as const;
  });
  // It stays: what is written after that fails as well.
  process.stdout.on("error", () => onInterrupt(new Interrupted("SIGPIPE", SIGPIPE)));
  return () => {
    for (const [name, listener] of listeners) process.off(name, listener);
  };
}
