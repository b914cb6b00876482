import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findFreePorts } from "../cli/demo/free_ports.ts";
import type { Guard } from "../cli/guard.ts";
import { describeEnd, ReplicaProcess } from "../cli/demo/replica_process.ts";
import type { Network } from "../mesh/runtime.ts";

/** A replica of a soak. */
export interface SoakReplica {
  /** Its server id. */
  readonly name: string;
  /** Where it serves, also while it does not. */
  readonly url: string;
  /** Its process. */
  readonly process: ReplicaProcess;
}

/** How replicas of a soak are made. */
export interface SoakReplicasOptions {
  /** How many. */
  readonly count: number;
  /** Settings for all of them. */
  readonly settings: Readonly<Record<string, string>>;
  /** Where their logs and spools go. */
  readonly directory: string;
  readonly guard: Guard;
  readonly network: Network;
  /** Told where one ends by itself. */
  readonly onLost: (text: string) => void;
}

const HOST = "127.0.0.1";

const PROGRAM = fileURLToPath(new URL("../cli/bin.ts", import.meta.url));

/** Makes replicas that know each other; none runs yet. */
export async function makeReplicas(options: SoakReplicasOptions): Promise<SoakReplica[]> {
  const { count, settings, directory, guard, network, onLost } = options;
  const ports = await findFreePorts(network, count * 2);
  const meshPorts = ports.slice(count);
  const shared = {
    ...settings,
    HOST,
    QUEEN_MESH_HOST: HOST,
    QUEEN_SYNC_SECRET: randomBytes(24).toString("base64url"),
    // With a key everything may be spooled, whatever a replica knows of the queue.
    QUEEN_ENCRYPTION_KEY: randomBytes(32).toString("hex"),
  };
  return Array.from({ length: count }, (_, i) => {
    const name = String.fromCharCode(65 + i);
    const peers = meshPorts.filter((_, other) => other !== i).map((port) => `${HOST}:${port}`);
    const process: ReplicaProcess = new ReplicaProcess({
      name,
      program: PROGRAM,
      directory,
      guard,
      settings: {
        ...shared,
        PORT: String(ports[i]),
        QUEEN_SERVER_ID: name,
        QUEEN_MESH_PORT: String(meshPorts[i]),
        QUEEN_MESH_PEERS: peers.join(","),
        FILE_BUFFER_DIR: join(directory, "spools", name),
      },
      onLost: async (end) => {
        const last = (await process.logTail()).at(-1);
        onLost(`${name} is gone: ${describeEnd(end)}; the end of its log: ${last}`);
      },
    });
    return { name, url: `http://${HOST}:${ports[i]}`, process };
  });
}
