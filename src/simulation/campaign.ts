/**
 * Many seeds in a row, and what is told of them.
 *
 * @module
 */

import type { Plant } from "./simulated_node.ts";
import { simulate } from "./simulation.ts";

/** How often progress is told, in milliseconds. */
const PROGRESS_MS = 1000;

/** What to run and where to tell of it. */
export interface CampaignOptions {
  /** The first seed. */
  readonly from: number;
  /** How many seeds to run. */
  readonly count: number;
  /** Changes what every mesh is made from: a planted fault. */
  readonly plant?: Plant;
  /** Takes each line. */
  readonly print: (line: string) => void;
  /** The time, in milliseconds. */
  readonly now: () => number;
  /** Told of each seed before it runs. */
  readonly onSeed?: (seed: number) => void;
}

/**
 * Runs seeds until something goes wrong, and tells how many there are in a second. Of the first that
 * goes wrong it prints the whole trace.
 *
 * @returns Whether nothing went wrong.
 */
export async function runSeeds(options: CampaignOptions): Promise<boolean> {
  const { from, count, print, now, onSeed, ...planted } = options;
  const startedAt = now();
  let toldAt = startedAt;
  for (let done = 1; done <= count; done++) {
    const seed = from + done - 1;
    onSeed?.(seed);
    const { violation } = await simulate(seed, planted);
    if (violation !== null) return replaySeed(seed, options);
    const time = now();
    if (time - toldAt < PROGRESS_MS && done < count) continue;
    toldAt = time;
    const perSecond = Math.round(done / Math.max(time - startedAt, 1) * 1000);
    print(`${done} of ${count} seeds, ${perSecond} seeds/s`);
  }
  return true;
}

/**
 * Runs one seed and prints all that happens.
 *
 * @returns Whether nothing went wrong.
 */
export async function replaySeed(
  seed: number,
  options: Pick<CampaignOptions, "plant" | "print">,
): Promise<boolean> {
  const { print, plant } = options;
  const planted = plant === undefined ? {} : { plant };
  const { violation, trace } = await simulate(seed, { ...planted, isTraced: true });
  for (const line of trace) print(line);
  if (violation === null) {
    print(`seed ${seed}: nothing went wrong`);
    return true;
  }
  print(`seed ${seed} breaks the rule "${violation.rule}": ${violation.text}`);
  print(`replay it by: deno task simulate --seed ${seed}`);
  return false;
}
