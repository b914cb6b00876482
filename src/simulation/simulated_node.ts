/**
 * One node of a simulated mesh, through all of its lives.
 *
 * @module
 */

import { Backoff } from "../mesh/backoff.ts";
import type { MeshConfig } from "../mesh/config.ts";
import { Handshake } from "../mesh/handshake.ts";
import { Liveness } from "../mesh/liveness.ts";
import { Mesh, type MeshOptions, type MeshParts } from "../mesh/mesh.ts";
import type { Logger } from "../mesh/runtime.ts";
import { SendQueue } from "../mesh/send_queue.ts";
import type { MeshStats } from "../mesh/stats.ts";
import { FrameDecoder } from "../protocol/frame.ts";
import type { Mac } from "../protocol/hello.ts";
import type { OutgoingMessage } from "../protocol/messages.ts";
import type { SimulatedHost } from "./host.ts";
import type { Invariants, NodeWatch } from "./invariants.ts";
import type { NodeSettings } from "./node_settings.ts";
import type { Death } from "./process.ts";
import type { Profile } from "./profile.ts";
import { settle } from "./virtual_clock.ts";
import { macText } from "./wire.ts";

/** The port on which every simulated node listens. */
export const MESH_PORT = 6633;

/** What a mesh is made from. A planted fault changes it. */
export interface MeshSetup {
  /** What the mesh is handed. */
  readonly options: MeshOptions;
  /** The parts that take the place of the mesh's own. */
  readonly parts: MeshParts;
  /** How it ought to behave. */
  readonly settings: NodeSettings;
  /** Makes the mesh. */
  readonly create: (options: MeshOptions, parts: MeshParts) => Mesh;
}

/** Changes what a mesh is made from. */
export type Plant = (setup: MeshSetup) => MeshSetup;

/** What a {@linkcode SimulatedNode} rests on. */
export interface SimulatedNodeOptions {
  /** Where it runs. Its name is the host's. */
  readonly host: SimulatedHost;
  /** The names of all nodes. */
  readonly names: readonly string[];
  /** What holds for the whole run. */
  readonly profile: Profile;
  /** Who watches. */
  readonly invariants: Invariants;
  /** Changes what its mesh is made from. */
  readonly plant: Plant;
  /** Takes the lines of a trace; null where there is none. */
  readonly note: ((text: string) => void) | null;
}

/** A life: a mesh in a process. */
interface Life {
  readonly mesh: Mesh;
  readonly watch: NodeWatch;
}

/** One node: its host, and the mesh that runs there now, if any does. */
export class SimulatedNode {
  /** Its name, its host's name and its server id. */
  readonly name: string;
  /** Where it runs. */
  readonly host: SimulatedHost;
  /** Its secret is not the others' in its present life. */
  isMisconfigured = false;
  readonly #options: SimulatedNodeOptions;
  #life: Life | null = null;

  /** Makes a node that does not run yet. */
  constructor(options: SimulatedNodeOptions) {
    this.#options = options;
    this.host = options.host;
    this.name = options.host.name;
  }

  /** Whether it runs. */
  get isRunning(): boolean {
    return this.#life !== null;
  }

  /** What is known of its present life; null while it does not run. */
  get watch(): NodeWatch | null {
    return this.#life?.watch ?? null;
  }

  /** What it says of itself; null while it does not run. */
  get stats(): MeshStats | null {
    return this.#life?.mesh.stats() ?? null;
  }

  /** Starts a process and a mesh in it. */
  start({ secret }: { readonly secret: string }): void {
    const { profile, names, invariants, plant, note } = this.#options;
    const peers = names.filter((name) => profile.isSelfListed || name !== this.name);
    const process = this.host.start();
    this.isMisconfigured = secret !== profile.secret;
    const settings: NodeSettings = { ...profile, secret, serverId: this.name };
    const watch = invariants.watch({ name: this.name, process, settings, peers });
    const config: MeshConfig = {
      enabled: true,
      serverId: this.name,
      port: MESH_PORT,
      peers: peers.map((host) => ({ host, port: MESH_PORT })),
      secret,
      heartbeatMs: profile.heartbeatMs,
      deadThresholdMs: profile.deadThresholdMs,
    };
    const { options, parts, create } = plant({
      options: {
        runtime: process.runtime,
        config,
        onMessage: (message, from) => invariants.dispatched(process, message, from),
        createMac,
        ...(note === null ? {} : { logger: loggerTo((text) => note(`${this.name} ${text}`)) }),
      },
      parts: {
        createQueue: () => new SendQueue(profile),
        createBackoff: ({ random }) => new Backoff(random),
        createDecoder: () => new FrameDecoder({ chunkBytes: profile.chunkBytes }),
        createHandshake: (options) => new Handshake(options),
        createLiveness: (options) => new Liveness(options),
      },
      settings,
      create: (options, parts) => new Mesh(options, parts),
    });
    let queues = 0;
    const mesh = create(options, {
      ...parts,
      createQueue: () => watch.watchQueue(queues++, parts.createQueue()),
    });
    this.#life = { mesh, watch };
    // It never rejects: a port that cannot be bound is tried again.
    void mesh.start();
  }

  /** Asks it to broadcast messages in one turn of the event loop. */
  broadcast(messages: readonly OutgoingMessage[]): void {
    if (this.#life === null) return;
    this.#life.watch.asked(messages);
    for (const message of messages) this.#life.mesh.broadcast(message);
  }

  /** Kills its process. */
  kill(death: Death): void {
    if (this.#life === null) return;
    this.#options.invariants.unwatch(this.host.process);
    this.#life = null;
    this.host.kill(death);
  }

  /** Closes its mesh and checks that nothing is left, which needs no time to pass. */
  async close(): Promise<void> {
    if (this.#life === null) return;
    const { mesh, watch } = this.#life;
    let isClosed = false;
    mesh.close().then(() => isClosed = true);
    await settle();
    if (!isClosed) this.#options.invariants.report("close", `${this.name} does not close`);
    watch.checkClosed();
    this.kill("end");
  }
}

/** Signs within the event loop: Web Crypto would leave virtual time. */
function createMac(secret: string): Mac | undefined {
  if (secret === "") return undefined;
  return (nonce) => Promise.resolve(bytesOfHex(macText(secret, nonce)));
}

function bytesOfHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

function loggerTo(note: (text: string) => void): Logger {
  const log = (message: string, fields: Readonly<Record<string, unknown>> = {}) =>
    note(`logs: ${message} ${JSON.stringify(fields)}`);
  return { info: log, warn: log, error: log };
}
