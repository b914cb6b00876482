/**
 * A look at who listens to a signal.
 *
 * @module
 */

/** Counts the listeners that are put on `signal` from now on and not taken off again. */
export function countListeners(signal: AbortSignal): () => number {
  const listeners = new Set<unknown>();
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: Parameters<AbortSignal["addEventListener"]>) => {
    listeners.add(args[1]);
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<AbortSignal["removeEventListener"]>) => {
    listeners.delete(args[1]);
    removeEventListener.apply(signal, args);
  };
  return () => listeners.size;
}
