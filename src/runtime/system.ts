/**
 * The clock and the randomness of the machine, by what Deno and Node share.
 *
 * @module
 */

import type { Clock, Random, Timer } from "../mesh/runtime.ts";

/** The longest that `setTimeout` can wait; beyond it, it fires at once. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** The most that `crypto.getRandomValues` gives in one call. */
const RANDOM_BYTES_MAX = 65_536;

/** The monotonic clock of this process. A timer keeps the process alive until it is cancelled. */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimer,
};

/** Randomness from the system's cryptographic generator. */
export const systemRandom: Random = (bytes) => {
  for (let at = 0; at < bytes.length; at += RANDOM_BYTES_MAX) {
    crypto.getRandomValues(bytes.subarray(at, at + RANDOM_BYTES_MAX));
  }
  return bytes;
};

function setTimer(ms: number, callback: () => void): Timer {
  const due = performance.now() + ms;
  let handle: ReturnType<typeof setTimeout>;
  function arm(left: number): void {
    // A deadline may be over already. The platform would warn of a time below 0.
    handle = setTimeout(fire, Math.max(0, Math.min(Math.ceil(left), TIMEOUT_MS_MAX)));
  }
  function fire(): void {
    // Node's timers can be a fraction of a millisecond early; long waits come in several parts.
    const left = due - performance.now();
    if (left > 0) arm(left);
    else callback();
  }
  arm(ms);
  return { cancel: () => clearTimeout(handle) };
}
