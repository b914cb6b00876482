/**
 * A whole replica, put together from the package's public parts: what the mutants of the data plane
 * are planted into. Unmodified it conforms.
 *
 * @module
 */

import { once } from "node:events";
import process from "node:process";
import {
  databaseFromEnv,
  listenHttp,
  nodeFileSystem,
  PostgresStore,
  Replica,
  replicaConfigFromEnv,
  socketLock,
} from "../../src/broker/mod.ts";
import { currentRuntime } from "../../src/cli/platform.ts";
import { Mesh } from "../../src/mesh/mesh.ts";
import { logger } from "./log.ts";
import type { Plant } from "./setup.ts";

/** Runs a replica until SIGTERM. Resolves to its exit code. */
export async function runReplicaNode(plant: Plant): Promise<number> {
  const setup = plant({
    env: process.env,
    runtime: await currentRuntime(),
    parts: {},
    meshOptions: (options) => options,
    createMesh: (options, parts) => new Mesh(options, parts),
    stats: (stats) => stats,
    beforeNotified: () => Promise.resolve(),
    store: (store) => store,
  });
  const { runtime, env } = setup;
  const config = replicaConfigFromEnv(env, {
    hostName: "mutant",
    random: runtime.random,
    warn: (message) => logger.warn(message),
  });
  const { url = "", ...database } = databaseFromEnv(env);
  let mesh: Mesh | undefined;
  const replica = new Replica({
    runtime,
    listenHttp,
    store: setup.store(
      new PostgresStore({ ...database, url, clock: runtime.clock }),
      () => mesh,
    ),
    config,
    spool: {
      ...config.spool,
      fileSystem: nodeFileSystem,
      acquireLock: socketLock(runtime),
      wallClock: () => Date.now(),
    },
    logger,
    createMesh: (options) => mesh = setup.createMesh(setup.meshOptions(options), setup.parts),
  });
  await replica.start();
  await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  await replica.close();
  return 0;
}
