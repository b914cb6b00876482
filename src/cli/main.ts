/**
 * The command `queen-mesh`.
 *
 * @module
 */

import { Command, CommanderError } from "commander";
import { VERSION } from "../broker/version.ts";
import { addDemoCommand } from "./demo.ts";
import { serve, type ServeOptions } from "./serve.ts";

/**
 * Runs one command and resolves to its exit code once it has ended.
 *
 * @param args The arguments, the program's own name not included.
 *
 * @example
 * ```ts no-assert
 * import { main } from "@queen/mesh/cli";
 *
 * await main(["--version"]);
 * ```
 */
export async function main(args: readonly string[]): Promise<number> {
  let code = 0;
  const program = new Command("queen-mesh")
    .description("A message broker over PostgreSQL whose replicas wake each other's consumers")
    .version(VERSION)
    .exitOverride();
  program.command("serve")
    .description("run one replica, configured by the environment, until SIGINT or SIGTERM")
    .option("--adopt", "drain the spools of other replicas that lie beside its own")
    .action(async (options: ServeOptions) => {
      code = await serve(options);
    });
  addDemoCommand(program, (ended) => code = ended);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    // It has said on stderr what was wrong, or on stdout what it was asked for.
    if (error instanceof CommanderError) return error.exitCode;
    throw error;
  }
  return code;
}
