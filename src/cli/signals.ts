import process from "node:process";
import type { Logger } from "../mesh/runtime.ts";

/** The signals that ask a program to stop, and their numbers. */
const STOP_SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/** A signal that asks to stop. */
export type StopSignal = keyof typeof STOP_SIGNALS;

/** Waits for the signals that ask to stop. */
export class StopSignals {
  /** Resolves with the first one. */
  readonly first: Promise<void>;
  readonly #listener: (signal: StopSignal) => void;

  /**
   * Listens from now on. After the first signal, another one ends the process at once.
   *
   * @param onFirst Called with the first one.
   */
  constructor(onFirst: (signal: StopSignal) => void) {
    let resolve = () => {};
    this.first = new Promise((fulfil) => {
      resolve = fulfil;
    });
    let count = 0;
    this.#listener = (signal) => {
      if (++count > 1) process.exit(128 + STOP_SIGNALS[signal]);
      onFirst(signal);
      resolve();
    };
    for (const name of names()) process.on(name, this.#listener);
  }

  /** Listens no more. */
  close(): void {
    for (const name of names()) process.removeListener(name, this.#listener);
  }
}

function names(): StopSignal[] {
  return Object.keys(STOP_SIGNALS) as StopSignal[];
}

/**
 * Logs errors that nobody caught, and goes on. The PostgreSQL client can throw from a timer of its
 * own when the server goes away, and a replica outlives that.
 *
 * @returns Ends it.
 */
export function surviveErrors(logger: Logger): () => void {
  const onError = (error: unknown) => logger.error("An error was caught by nobody", { error });
  const events = ["uncaughtException", "unhandledRejection"] as const;
  for (const event of events) process.on(event, onError);
  return () => {
    for (const event of events) process.removeListener(event, onError);
  };
}
