/**
 * Waiting that can be given up.
 *
 * @module
 */

/**
 * Settles as `work` does, or rejects with the signal's reason as soon as it aborts. No listener
 * stays on the signal afterwards.
 *
 * @param work What is waited for. It goes on after an abort; its failure is then ignored.
 * @param signal Ends the waiting.
 * @param discard Is given what `work` yields too late, to release it.
 * @returns What `work` yields.
 */
export function abortable<T>(
  work: Promise<T>,
  signal: AbortSignal,
  discard?: (late: T) => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    function onAbort(): void {
      reject(signal.reason);
    }
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then((value) => {
      signal.removeEventListener("abort", onAbort);
      if (signal.aborted) discard?.(value);
      else resolve(value);
    }, (error) => {
      signal.removeEventListener("abort", onAbort);
      reject(error);
    });
  });
}
