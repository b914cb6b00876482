import { POP_WAIT_DEFAULTS } from "../../broker/backoff.ts";
import { type DemoReplica, startReplicas, stopReplicas } from "./replicas.ts";
import { playRound, type Round, type RoundOptions } from "./round.ts";
import { type Expectation, growth, type Series } from "./series.ts";
import type { Stage } from "./stage.ts";

/** A reply that came by a wake came faster than this, in milliseconds. */
const WOKEN_REPLY_MS_MAX = 1000;

/** How much later than the longest backoff a reply without the mesh may come, in milliseconds. */
const POLL_SLACK_MS = 1000;

/** With the mesh a push comes up to this long after the pop is seen parked, in milliseconds. */
export const DELAY_MS_MAX = 20;

/** Without it, long enough for some pops to have left the first, short waits of the backoff behind. */
const DELAY_WITHOUT_MS_MAX = 500;

/** What is claimed of `count` rounds with the mesh. */
export function expectWakes(count: number): Expectation {
  return { count, by: "wake", replyMsMax: WOKEN_REPLY_MS_MAX };
}

/** What is claimed of `count` rounds without it. */
export function expectPolls(count: number): Expectation {
  return { count, by: "poll", replyMsMax: POP_WAIT_DEFAULTS.maxMs + POLL_SLACK_MS };
}

/** What {@linkcode playSeries} plays. */
export interface SeriesOptions extends RoundOptions {
  /** What to call it. */
  readonly label: string;
  /** How many rounds. */
  readonly count: number;
  /** Told of each round that is over. */
  readonly onRound?: (played: number) => void;
}

/** Plays rounds one after the other, between two looks at the consumer's figures. */
export async function playSeries(options: SeriesOptions): Promise<Series> {
  const { consumer, label, queue, count, signal, onRound } = options;
  await consumer.client.configure(queue, signal);
  const { waker: before } = await consumer.client.stats(signal);
  const rounds: Round[] = [];
  while (rounds.length < count) {
    rounds.push(await playRound(options));
    onRound?.(rounds.length);
  }
  const { waker: after } = await consumer.client.stats(signal);
  return { label, rounds, before, after };
}

/** Who takes part, and how often. */
export interface WakingOptions {
  /** Pushes go here. */
  readonly producer: DemoReplica;
  /** Pops are parked here. */
  readonly consumer: DemoReplica;
  /** How many rounds. */
  readonly count: number;
}

/** Plays rounds with the mesh. */
export async function playWithMesh(stage: Stage, options: WakingOptions): Promise<Series> {
  const { count } = options;
  return await stage.terminal.step("rounds with the mesh", (progress) =>
    playSeries({
      ...options,
      label: "with the mesh",
      queue: "demo-with-mesh",
      delayMsMax: DELAY_MS_MAX,
      signal: stage.signal,
      onRound: (played) => progress(`${played} of ${count}`),
    }), describeSeries);
}

/** Plays rounds without the mesh, on a second A and B, which have none and the default backoff. */
export async function playWithoutMesh(stage: Stage, count: number): Promise<Series> {
  return await stage.terminal.step("rounds without the mesh", async (progress) => {
    progress("A and B start once more");
    const replicas = await startReplicas(stage, {
      names: ["A-without-mesh", "B-without-mesh"],
      settings: { QUEEN_SYNC_ENABLED: "false" },
    });
    const [producer, consumer] = replicas as [DemoReplica, DemoReplica];
    const series = await playSeries({
      producer,
      consumer,
      count,
      label: "without the mesh",
      queue: "demo-without-mesh",
      delayMsMax: DELAY_WITHOUT_MS_MAX,
      signal: stage.signal,
      onRound: (played) => progress(`${played} of ${count}`),
    });
    await stopReplicas(replicas);
    return series;
  }, describeSeries);
}

function describeSeries(series: Series): string {
  const { replies_by_wake, replies_by_poll } = growth(series);
  return `${series.label}: ${replies_by_wake} of ${series.rounds.length} replies by a wake, ` +
    `${replies_by_poll} by a poll`;
}
