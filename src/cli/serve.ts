import { hostname } from "node:os";
import process from "node:process";
import { replicaConfigFromEnv } from "../broker/config.ts";
import { Replica } from "../broker/replica.ts";
import { databaseFromEnv } from "../broker/store/database_config.ts";
import { PostgresStore } from "../broker/store/postgres_store.ts";
import type { Env } from "../mesh/env.ts";
import type { Logger, Runtime } from "../mesh/runtime.ts";
import { listenHttp } from "../runtime/http.ts";
import { type Log, openLog } from "./log.ts";
import { currentRuntime } from "./platform.ts";
import { StopSignals, surviveErrors } from "./signals.ts";

/** Where PostgreSQL is looked for where the environment names none. */
const DEFAULT_DATABASE_URL = "postgres://postgres@localhost:5432/postgres";

/** A stop that takes longer, because clients do not take their replies, is given up. */
const STOP_MS_MAX = 6000;

/**
 * Runs one replica until SIGINT or SIGTERM, configured by the environment (protocol, section 9).
 * Resolves to the exit code: 0 after a clean stop; 1 where the start failed, with the reason in one
 * line on stderr, or where the stop was given up. A second signal ends the process at once.
 */
export async function serve(): Promise<number> {
  const log = openLog();
  try {
    return await run(log);
  } finally {
    log.flush();
  }
}

async function run({ logger }: Log): Promise<number> {
  const runtime = await currentRuntime();
  const signals = new StopSignals((signal) => logger.info("The replica stops", { signal }));
  const stopSurviving = surviveErrors(logger);
  try {
    const replica = createReplica({ env: process.env, runtime, logger });
    await replica.start();
    await signals.first;
    return await stop(replica, { runtime, logger });
  } catch (error) {
    process.stderr.write(`queen-mesh: ${reasonOf(error)}\n`);
    return 1;
  } finally {
    stopSurviving();
    signals.close();
  }
}

/** What a replica is made of, beside what is fixed. */
interface Surroundings {
  readonly env: Env;
  readonly runtime: Runtime;
  readonly logger: Logger;
}

function createReplica({ env, runtime, logger }: Surroundings): Replica {
  const config = replicaConfigFromEnv(env, {
    hostName: hostname(),
    random: runtime.random,
    warn: (message) => logger.warn(message),
  });
  const { url = DEFAULT_DATABASE_URL, ...database } = databaseFromEnv(env);
  const store = new PostgresStore({ ...database, url, clock: runtime.clock });
  return new Replica({ runtime, listenHttp, store, config, logger });
}

async function stop(
  replica: Replica,
  { runtime, logger }: Pick<Surroundings, "runtime" | "logger">,
): Promise<number> {
  return await new Promise<number>((resolve, reject) => {
    const deadline = runtime.clock.setTimer(STOP_MS_MAX, () => {
      logger.warn("The replica gives up waiting for clients to take their replies");
      resolve(1);
    });
    replica.close().then(() => resolve(0), reject).finally(() => deadline.cancel());
  });
}

/** Why something failed, in one line. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error);
  return message.replace(/\s+/g, " ");
}
