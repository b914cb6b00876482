import { randomBytes } from "node:crypto";
import { findFreePorts } from "./free_ports.ts";
import { DemoFailure } from "./failure.ts";
import { ReplicaClient } from "./replica_client.ts";
import { ReplicaProcess } from "./replica_process.ts";
import type { Stage } from "./stage.ts";
import { until } from "./wait.ts";

/** A replica of the demo. */
export interface DemoReplica {
  /** What the demo calls it; its server id too. */
  readonly name: string;
  /** Its process. */
  readonly process: ReplicaProcess;
  /** Talks to it. */
  readonly client: ReplicaClient;
  /** The port of its node of the mesh. */
  readonly meshPort: number;
}

/** How a replica is to be set up, beside what the demo gives to all. */
export interface ReplicaSettings {
  /** What to call them. */
  readonly names: readonly string[];
  /** Settings of the environment, for all of them. */
  readonly settings: Readonly<Record<string, string>>;
}

/** What the replicas bind and reach each other by: nothing of the demo can be seen from elsewhere. */
const HOST = "127.0.0.1";

/** How long a replica gets until it serves, in milliseconds. */
const START_MS_MAX = 20_000;

/** Few connections for each: a given server may not have many to spare. */
const POOL_SIZE = 4;

/** Starts replicas that know each other and resolves once they serve. */
export async function startReplicas(
  stage: Stage,
  { names, settings }: ReplicaSettings,
): Promise<DemoReplica[]> {
  const secret = randomBytes(24).toString("base64url");
  const ports = await findFreePorts(stage.network, names.length * 2);
  const meshPorts = ports.slice(names.length);
  const replicas = names.map((name, i) => {
    const peers = meshPorts.filter((_, other) => other !== i).map((port) => `${HOST}:${port}`);
    return makeReplica(stage, {
      name,
      port: ports[i]!,
      meshPort: meshPorts[i]!,
      settings: {
        ...settings,
        QUEEN_MESH_PEERS: peers.join(","),
        QUEEN_SYNC_SECRET: secret,
      },
    });
  });
  stage.cleanup.add(() => stopReplicas(replicas));
  for (const { process } of replicas) process.start();
  await Promise.all(replicas.map((replica) => waitUntilServing(stage, replica)));
  return replicas;
}

/** Resolves once a replica that was started serves. */
export async function waitUntilServing({ signal }: Stage, replica: DemoReplica): Promise<void> {
  await until(`${replica.name} serves`, () => replica.client.findAilment(signal), {
    timeoutMs: START_MS_MAX,
    everyMs: 25,
    signal,
  });
}

/**
 * Stops replicas.
 *
 * @throws {DemoFailure} If one of them did not stop as it should; all of them are gone then, too.
 */
export async function stopReplicas(replicas: readonly DemoReplica[]): Promise<void> {
  const faults = await Promise.all(replicas.map(({ process }) => process.stop()));
  const found = faults.filter((fault) => fault !== undefined);
  if (found.length > 0) throw new DemoFailure(found.join("; "));
}

interface Plan {
  readonly name: string;
  readonly port: number;
  readonly meshPort: number;
  readonly settings: Readonly<Record<string, string>>;
}

function makeReplica(stage: Stage, { name, port, meshPort, settings }: Plan): DemoReplica {
  const process = new ReplicaProcess({
    name,
    settings: {
      ...settings,
      HOST,
      PORT: String(port),
      QUEEN_SERVER_ID: name,
      QUEEN_MESH_HOST: HOST,
      QUEEN_MESH_PORT: String(meshPort),
      DATABASE_URL: stage.databaseUrl,
      DB_POOL_SIZE: String(POOL_SIZE),
    },
    directory: stage.directory,
    guard: stage.guard,
    onLost: (end) => stage.onLost(name, end),
  });
  stage.processes.push(process);
  return { name, process, client: new ReplicaClient(`http://${HOST}:${port}`), meshPort };
}
