/**
 * Runs simulated meshes, one for each seed, until something goes wrong.
 *
 *     deno task simulate --seeds 20000
 *     deno task simulate --seed 42
 */

import process from "node:process";
import { Command, InvalidArgumentError } from "commander";
import { replaySeed, runSeeds } from "../src/simulation/campaign.ts";

const { seeds, from, seed } = new Command("simulate")
  .description("Run the simulated mesh from many seeds, or replay one with its whole trace")
  .option("--seeds <count>", "how many seeds to run", parseCount, 1000)
  .option("--from <seed>", "the first of them", parseSeed, 0)
  .option("--seed <seed>", "replay this one and print its trace", parseSeed)
  .parse()
  .opts<{ seeds: number; from: number; seed?: number }>();

let seedNow = seed;
process.on("unhandledRejection", (reason) => {
  console.error(`seed ${seedNow}: a rejection that nobody handles`, reason);
  process.exit(1);
});

const print = (line: string) => console.log(line);
const isSound = seed === undefined
  ? await runSeeds({
    from,
    count: seeds,
    print,
    now: () => performance.now(),
    onSeed: (next) => seedNow = next,
  })
  : await replaySeed(seed, { print });
process.exitCode = isSound ? 0 : 1;

function parseSeed(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("A seed is a whole number from 0.");
  return Number(text);
}

function parseCount(text: string): number {
  const count = parseSeed(text);
  if (count < 1) throw new InvalidArgumentError("At least one seed is needed.");
  return count;
}
