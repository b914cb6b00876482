import { setTimeout as delay } from "node:timers/promises";
import { DemoFailure } from "./failure.ts";
import { formatMs } from "./format.ts";

/** How long and how often {@linkcode until} looks. */
export interface UntilOptions {
  /** Gives up after this time, in milliseconds. */
  readonly timeoutMs: number;
  /** The pause between two looks, in milliseconds. */
  readonly everyMs: number;
  /** Ends the waiting: it rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

/**
 * Looks again and again until what is waited for holds.
 *
 * @param what What is waited for, as the failure names it.
 * @param look Resolves to undefined once it holds, else to what stands in the way.
 * @throws {DemoFailure} If it does not hold in time; it quotes the last look.
 */
export async function until(
  what: string,
  look: () => Promise<string | undefined>,
  { timeoutMs, everyMs, signal }: UntilOptions,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const obstacle = await look();
    if (obstacle === undefined) return;
    if (performance.now() > deadline) {
      throw new DemoFailure(`${what}: not within ${formatMs(timeoutMs)} (${obstacle})`);
    }
    await pause(everyMs, signal);
  }
}

/** Waits, and rejects with the signal's reason as soon as it aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    // The timer's own error says less.
    throw signal.aborted ? signal.reason : error;
  }
}
