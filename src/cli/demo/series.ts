import { DemoFailure } from "./failure.ts";
import { formatMs, formatTable } from "./format.ts";
import { percentile } from "./percentile.ts";
import type { WakerFigures } from "./replica_client.ts";
import type { Round } from "./round.ts";

/** Rounds of one kind, and the consuming replica's own figures before and after them. */
export interface Series {
  /** What they have in common. */
  readonly label: string;
  /** The rounds. */
  readonly rounds: readonly Round[];
  /** Its figures before the first. */
  readonly before: WakerFigures;
  /** Its figures after the last. */
  readonly after: WakerFigures;
}

/** What must be true of a {@linkcode Series}. */
export interface Expectation {
  /** How many rounds there are to be. */
  readonly count: number;
  /** What every reply is to come by. */
  readonly by: "wake" | "poll";
  /** Every reply comes within less than this time, in milliseconds. */
  readonly replyMsMax: number;
}

/** How much the figures have grown. */
export function growth({ before, after }: Pick<Series, "before" | "after">): WakerFigures {
  return {
    parked: after.parked - before.parked,
    first_queries: after.first_queries - before.first_queries,
    replies_at_once: after.replies_at_once - before.replies_at_once,
    replies_by_wake: after.replies_by_wake - before.replies_by_wake,
    replies_by_poll: after.replies_by_poll - before.replies_by_poll,
    empty_by_timeout: after.empty_by_timeout - before.empty_by_timeout,
  };
}

/** Compares a series with what is claimed of it. Gives a sentence for each claim that is not true. */
export function findFaults(series: Series, { count, by, replyMsMax }: Expectation): string[] {
  const { label, rounds } = series;
  const grown = growth(series);
  const expected: Record<keyof WakerFigures, number> = {
    parked: 0,
    first_queries: count,
    replies_at_once: 0,
    replies_by_wake: by === "wake" ? count : 0,
    replies_by_poll: by === "poll" ? count : 0,
    empty_by_timeout: 0,
  };
  const faults = Object.entries(expected).flatMap(([name, value]) => {
    const seen = grown[name as keyof WakerFigures];
    return seen === value ? [] : [`${label}: ${name} grew by ${seen}, not by ${value}`];
  });
  if (rounds.length !== count) {
    faults.push(`${label}: there were ${rounds.length} rounds, not ${count}`);
  }
  const late = rounds.filter(({ replyMs }) => !(replyMs < replyMsMax));
  if (late.length > 0) {
    faults.push(
      `${label}: ${late.length} of ${rounds.length} replies took ${formatMs(replyMsMax)} or more`,
    );
  }
  return faults;
}

/** The times and the figures of series, each with at least one round, as the lines of a table. */
export function seriesTable(all: readonly Series[]): string[] {
  return formatTable([
    ["", "rounds", "by wake", "by poll", "p50", "p99", "max"],
    ...all.map((series) => {
      const { label, rounds } = series;
      const { replies_by_wake, replies_by_poll } = growth(series);
      const times = rounds.map(({ replyMs }) => replyMs);
      return [
        label,
        String(rounds.length),
        String(replies_by_wake),
        String(replies_by_poll),
        ...[50, 99, 100].map((percent) => formatMs(percentile(times, percent))),
      ];
    }),
  ]);
}

/** @throws {DemoFailure} If there are any; it names them all. */
export function refuseFaults(faults: readonly string[]): void {
  if (faults.length > 0) throw new DemoFailure(faults.join("\n"));
}
