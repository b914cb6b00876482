import type { PeerAddress } from "./peers.ts";
import type { Abortable, Clock, Connection, Network } from "./runtime.ts";

/** A dial that has no answer is given up after this many milliseconds. */
export const DIAL_MS_MAX = 5000;

/** What {@linkcode dial} rests on. */
export interface DialOptions extends Abortable {
  /** Connections. */
  readonly network: Network;
  /** Time. */
  readonly clock: Clock;
}

/**
 * Connects to a peer: resolves its name anew and tries every address that it yields, each for its
 * share of the time that is left (TOP-3).
 *
 * Rejects where none answered within {@linkcode DIAL_MS_MAX}, with a message that says what each
 * said, or where the signal was aborted.
 */
export async function dial(peer: PeerAddress, options: DialOptions): Promise<Connection> {
  const { network, clock, signal } = options;
  const endMs = clock.now() + DIAL_MS_MAX;
  const ips = await withDeadline(
    DIAL_MS_MAX,
    options,
    (signal) => network.resolve(peer.host, { signal }),
  );
  const failures: string[] = [];
  for (const [tried, ip] of ips.entries()) {
    const shareMs = Math.max(1, (endMs - clock.now()) / (ips.length - tried));
    try {
      return await withDeadline(
        shareMs,
        options,
        (signal) => network.connect({ ip, port: peer.port }, { signal }),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      failures.push(`${ip}: ${messageOf(error)}`);
    }
  }
  throw new Error(failures.length > 0 ? failures.join("; ") : "the name yields no address");
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Runs `attempt` under a signal that also aborts when its time is over. */
async function withDeadline<T>(
  ms: number,
  { clock, signal }: DialOptions,
  attempt: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort);
  const timer = clock.setTimer(ms, () => {
    controller.abort(new Error(`no answer within ${Math.round(ms)} ms`));
  });
  try {
    return await attempt(controller.signal);
  } catch (error) {
    // What an adapter throws on abort is its own affair; the reason is ours.
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", abort);
  }
}
