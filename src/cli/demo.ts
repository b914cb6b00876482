import { type Command, InvalidArgumentError } from "commander";
import { type DemoOptions, runDemo } from "./demo/run.ts";
import { currentRuntime } from "./platform.ts";

/** The most rounds that can be asked for. */
const ROUNDS_MAX = 1_000_000;

/** Adds the command `demo` to a program; `onEnd` is told its exit code. */
export function addDemoCommand(program: Command, onEnd: (code: number) => void): void {
  program.command("demo")
    .description("start three replicas on one PostgreSQL and show what the mesh does for them")
    .option("--keep", "leave everything running at the end, until Ctrl-C", false)
    .option("--rounds <count>", "rounds with the mesh, fewer for the impatient", parseCount, 200)
    .option("--rounds-without <count>", "rounds without it, likewise", parseCount, 20)
    .addHelpText("after", HELP)
    .action(async (options: Omit<DemoOptions, "network">) => {
      const { network } = await currentRuntime();
      onEnd(await runDemo({ ...options, network }));
    });
}

const HELP = `
It brings a PostgreSQL of its own and takes it away again. Where DATABASE_URL or PG_* name a server,
it works in a database of random name beside the given one and drops it. Only where the demo itself
is killed by SIGKILL that database stays; processes and files never do.

Exit code: 0 if everything that the demo claims has happened, else 1.`;

/** @throws {InvalidArgumentError} If it is no whole number within its bounds. */
function parseCount(text: string): number {
  const count = /^\d{1,7}$/.test(text) ? Number(text) : NaN;
  if (count >= 1 && count <= ROUNDS_MAX) return count;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${ROUNDS_MAX}.`);
}
