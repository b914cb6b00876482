/**
 * Soaks real replicas: 8 producers and 8 consumers, while replicas are killed and PostgreSQL goes away.
 * Ends with 0 only if everything that was accepted was delivered to all, in the order that is promised.
 *
 *     deno task soak --seconds 60 --seed 1
 */

import process from "node:process";
import { Command, InvalidArgumentError } from "commander";
import { currentRuntime } from "../src/cli/platform.ts";
import { soak } from "../src/soak/soak.ts";
import { RULES } from "../src/soak/violation.ts";

/** How many violations are shown. */
const SHOWN_MAX = 20;

const options = new Command("soak")
  .description("Run replicas under load while they are killed and PostgreSQL goes away")
  .option("--seconds <count>", "for how long messages are pushed", parseCount, 60)
  .option("--seed <seed>", "of all choices; a random one by default", parseNumber)
  .option("--replicas <count>", "how many replicas", parseCount, 3)
  .option("--directory <path>", "keep logs, spools and the history here")
  .parse()
  .opts<{ seconds: number; seed?: number; replicas: number; directory?: string }>();

const { seconds, replicas, directory, seed = Math.floor(Math.random() * 2 ** 32) } = options;
const { network } = await currentRuntime();
const print = (line: string) => console.log(line);
print(`${seconds} s with ${replicas} replicas, seed ${seed}`);
const { violations } = await soak({ seconds, seed, replicas, directory, network, print });
for (const { rule, text } of violations.slice(0, SHOWN_MAX)) print(`BROKEN ${rule}: ${text}`);
for (const rule of new Set(violations.map(({ rule }) => rule))) {
  const count = violations.filter((violation) => violation.rule === rule).length;
  print(`${count} times broken, ${rule}: ${RULES[rule]}`);
}
print(violations.length === 0 ? "All rules hold" : `${violations.length} violations, seed ${seed}`);
process.exitCode = violations.length === 0 ? 0 : 1;

function parseNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("It is a whole number from 0.");
  return Number(text);
}

function parseCount(text: string): number {
  const count = parseNumber(text);
  if (count < 1) throw new InvalidArgumentError("At least one is needed.");
  return count;
}
