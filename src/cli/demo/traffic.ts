import { playRound, type Round, type RoundOptions } from "./round.ts";
import type { Series } from "./series.ts";

/** What {@linkcode startTraffic} needs beside a round's own. */
export interface TrafficOptions extends RoundOptions {
  /** What to call it. */
  readonly label: string;
  /** Told of a round that failed; there is none after it. */
  readonly onFailure: (error: Error) => void;
}

/** Rounds that go on in the background. */
export interface Traffic {
  /** How many are over. */
  readonly count: number;
  /** Ends after the round under way. Resolves to undefined where one failed. */
  stop(): Promise<Series | undefined>;
}

/** Begins to play rounds, one after the other, until it is stopped. */
export function startTraffic(options: TrafficOptions): Traffic {
  const { consumer, label, queue, signal, onFailure } = options;
  const rounds: Round[] = [];
  let isStopping = false;
  async function play(): Promise<Series> {
    await consumer.client.configure(queue, signal);
    const { waker: before } = await consumer.client.stats(signal);
    while (!isStopping) rounds.push(await playRound(options));
    const { waker: after } = await consumer.client.stats(signal);
    return { label, rounds, before, after };
  }
  const played = play().catch((error) => {
    onFailure(error);
    return undefined;
  });
  return {
    get count() {
      return rounds.length;
    },
    stop() {
      isStopping = true;
      return played;
    },
  };
}
