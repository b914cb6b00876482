import { createHmac } from "node:crypto";
import type { Mac } from "../protocol/hello.ts";
import type { Message } from "../protocol/messages.ts";
import { type Frame, FrameDecoder } from "../protocol/frame.ts";
import { SimulatedNetwork, type SimulatedNetworkOptions } from "../simulation/network.ts";
import type { SimulatedProcess } from "../simulation/process.ts";
import type { MeshConfig } from "../mesh/config.ts";
import { Mesh, type MeshParts } from "../mesh/mesh.ts";
import type { EnabledStats } from "../mesh/stats.ts";

/** The secret of every node below that is not told another. */
export const SECRET = "s3cr3t";

/** Signs within the event loop: Web Crypto would leave virtual time. */
export function createTestMac(secret: string): Mac | undefined {
  if (secret === "") return undefined;
  return (nonce) => Promise.resolve(createHmac("sha256", secret).update(nonce).digest());
}

/** One line of a node's log. */
export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A node of a simulated mesh, with what it heard and what it logged. */
export interface TestNode {
  readonly mesh: Mesh;
  readonly heard: { readonly message: Message; readonly from: string }[];
  readonly log: LogLine[];
  /** Its figures; fails where the mesh is off. */
  stats(): EnabledStats;
}

/** A simulated network whose nodes and connections are all gone after the test. */
export class TestMesh implements AsyncDisposable {
  readonly network: SimulatedNetwork;
  readonly #nodes: { readonly node: TestNode; readonly process: SimulatedProcess }[] = [];

  constructor(options: SimulatedNetworkOptions = {}) {
    this.network = new SimulatedNetwork(options);
  }

  /** Starts a node on the host `name`, which has peers of these names. */
  async node(
    name: string,
    peers: readonly string[],
    changes: Partial<MeshConfig> & {
      readonly parts?: Partial<MeshParts>;
      readonly onMessage?: (message: Message, from: string) => void;
    } = {},
  ): Promise<TestNode> {
    const { parts, onMessage, ...config } = changes;
    const heard: TestNode["heard"] = [];
    const log: LogLine[] = [];
    const to = (level: LogLine["level"]) => (message: string, fields = {}) => {
      log.push({ level, message, fields });
    };
    const mesh = new Mesh({
      runtime: this.network.host(name).runtime,
      config: {
        serverId: name,
        secret: SECRET,
        peers: peers.map((host) => ({ host, port: 6633 })),
        ...config,
      },
      onMessage: (message, from) => {
        heard.push({ message, from });
        return onMessage?.(message, from);
      },
      logger: { info: to("info"), warn: to("warn"), error: to("error") },
      createMac: createTestMac,
    }, parts);
    const node: TestNode = {
      mesh,
      heard,
      log,
      stats() {
        const stats = mesh.stats();
        if (!stats.enabled) throw new Error("the mesh is off");
        return stats;
      },
    };
    this.#nodes.push({ node, process: this.network.host(name).process });
    await mesh.start();
    return node;
  }

  /** Lets `ms` milliseconds of virtual time pass. */
  async pass(ms: number): Promise<void> {
    await this.network.clock.advance(ms);
  }

  /** Closes the nodes on the host `name`, whether they have started or not. */
  close(name: string): void {
    const { process } = this.network.host(name);
    for (const other of this.#nodes) if (other.process === process) void other.node.mesh.close();
  }

  /** Closes every node and sees to it that none left a timer or a connection behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing that a killed process waits for ever comes: what ran in it cannot be closed.
    const alive = this.#nodes.filter(({ process }) => process.isAlive);
    await Promise.all(alive.map(({ node }) => node.mesh.close()));
    if (this.network.breaches.length > 0) throw new Error(this.network.breaches.join("\n"));
  }
}

/** The complete frames in `bytes`. */
export function framesIn(bytes: Uint8Array): Frame[] {
  const decoder = new FrameDecoder();
  decoder.push(bytes);
  const frames: Frame[] = [];
  for (let frame = decoder.next(); frame !== undefined; frame = decoder.next()) {
    frames.push({ type: frame.type, payload: frame.payload.slice() });
  }
  return frames;
}

/** A frame's payload as JSON. */
export function payloadOf(frame: Frame | undefined): Record<string, unknown> {
  if (frame === undefined) throw new Error("there is no such frame");
  return JSON.parse(new TextDecoder().decode(frame.payload));
}
