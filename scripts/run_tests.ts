/**
 * Runs the tests, on one embedded PostgreSQL for all of them unless the environment names another.
 * Arguments go to `deno test`.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { databaseFromEnv } from "../src/broker/store/database_config.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../src/embedded/embedded_postgres.ts";

/** How long the tests get to end after a signal, in milliseconds, before they are killed. */
const GRACE_MS = 10_000;

async function main(args: readonly string[]): Promise<number> {
  const { url } = databaseFromEnv(process.env);
  // A signal while the server starts waits until there is something to stop.
  let signalled: NodeJS.Signals | undefined;
  let passOn = (signal: NodeJS.Signals) => {
    signalled ??= signal;
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => passOn(signal));
  }
  const server = url === undefined ? await startEmbeddedPostgres() : undefined;
  try {
    if (signalled) return 1;
    return await runTests(args, server, (handler) => passOn = handler);
  } finally {
    await server?.stop();
  }
}

async function runTests(
  args: readonly string[],
  server: EmbeddedPostgres | undefined,
  onSignal: (handler: (signal: NodeJS.Signals) => void) => void,
): Promise<number> {
  const child = spawn(process.execPath, ["test", "-A", "--parallel", "--doc", ...args], {
    env: { ...process.env, ...(server && { DATABASE_URL: server.url }) },
    stdio: ["inherit", "pipe", "inherit"],
  });
  onSignal((signal) => {
    child.kill(signal);
    setTimeout(() => child.kill("SIGKILL"), GRACE_MS).unref();
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    process.stdout.write(text);
    output = (output + text).slice(-10_000);
  });
  const [code] = await once(child, "close");
  const summary = summaryOf(output);
  if (summary) console.log(summary);
  return code ?? 1;
}

/** The last line of `deno test` as "N passed, N failed". */
function summaryOf(output: string): string | undefined {
  // deno-lint-ignore no-control-regex -- these are its colours
  const plain = output.replace(/\x1b\[[\d;]*m/g, "");
  const counts = plain.match(/(\d+) passed.*\| (\d+) failed.*(\n|$)/g)?.at(-1);
  if (!counts) return undefined;
  const count = (word: string) => counts.match(new RegExp(`(\\d+) ${word}`))?.[1];
  const ignored = count("ignored");
  return `${count("passed")} passed, ${count("failed")} failed` +
    (ignored ? `, ${ignored} skipped` : "");
}

process.exitCode = await main(process.argv.slice(2));
