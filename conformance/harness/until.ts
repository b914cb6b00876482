import { setTimeout as delay } from "node:timers/promises";
import { Failure, shown } from "./failure.ts";

/** How {@linkcode until} waits. */
export interface UntilOptions {
  /** Gives up after this time, in milliseconds. */
  readonly timeoutMs: number;
  /** Ends the waiting at once. */
  readonly signal: AbortSignal;
  /** The last look in words, for the failure; the value as JSON where it is left out. */
  readonly describe?: ((value: never) => string) | undefined;
}

/** The pause between two looks, in milliseconds. */
const EVERY_MS = 10;

/**
 * Looks again and again until what is waited for holds, and gives the look that showed it.
 *
 * @param expected What is waited for, to be read after "expected".
 * @throws {Failure} If it does not hold in time; the last look is what was seen.
 */
export async function until<T>(
  expected: string,
  look: () => T | Promise<T>,
  accept: (value: T) => boolean,
  { timeoutMs, signal, describe }: UntilOptions,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await look();
    if (accept(value)) return value;
    if (performance.now() > deadline) {
      const words = describe ? (describe as (value: T) => string)(value) : shown(value);
      throw new Failure(`${expected} within ${timeoutMs} ms`, words);
    }
    await pause(EVERY_MS, signal);
  }
}

/** Waits; rejects with the signal's reason once it is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
}
