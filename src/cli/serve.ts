import { hostname } from "node:os";
import process from "node:process";
import { replicaConfigFromEnv } from "../broker/config.ts";
import { createCipher } from "../broker/spool/aes_gcm_cipher.ts";
import { nodeFileSystem } from "../broker/spool/node_file_system.ts";
import { socketLock } from "../runtime/socket_lock.ts";
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

/** How a replica is run, beside what the environment says. */
export interface ServeOptions {
  /** Whether the spools of other replicas that lie beside its own are drained too. */
  readonly adopt?: boolean;
}

/**
 * Runs one replica until SIGINT or SIGTERM, configured by the environment (protocol, section 9).
 * Resolves to the exit code: 0 after a clean stop; 1 where the start failed, with the reason in one
 * line on stderr, or where the stop was given up. A second signal ends the process at once.
 */
export async function serve(options: ServeOptions = {}): Promise<number> {
  const log = openLog();
  try {
    return await run(log, options);
  } finally {
    log.flush();
  }
}

async function run({ logger }: Log, { adopt = false }: ServeOptions): Promise<number> {
  const runtime = await currentRuntime();
  const signals = new StopSignals((signal) => logger.info("The replica stops", { signal }));
  const stopSurviving = surviveErrors(logger);
  try {
    const replica = await createReplica({ env: process.env, runtime, adopt, logger });
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
  readonly adopt: boolean;
  readonly logger: Logger;
}

async function createReplica({ env, runtime, adopt, logger }: Surroundings): Promise<Replica> {
  const config = replicaConfigFromEnv(env, {
    hostName: hostname(),
    random: runtime.random,
    warn: (message) => logger.warn(message),
  });
  const { url = DEFAULT_DATABASE_URL, ...database } = databaseFromEnv(env);
  const store = new PostgresStore({ ...database, url, clock: runtime.clock });
  const { encryptionKeyHex } = config;
  return new Replica({
    runtime,
    listenHttp,
    store,
    config,
    spool: {
      ...config.spool,
      adopt,
      fileSystem: nodeFileSystem,
      acquireLock: socketLock(runtime),
      wallClock: () => Date.now(),
    },
    ...(encryptionKeyHex === undefined ? {} : { cipher: await createCipher(encryptionKeyHex) }),
    logger,
  });
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
