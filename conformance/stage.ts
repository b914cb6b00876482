import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import type { ScratchDatabase } from "../src/broker/store/scratch_database.ts";
import type { Guard } from "../src/cli/guard.ts";
import { databaseEnv, type DatabaseServer } from "./harness/database.ts";
import { PeerListener } from "./harness/listener.ts";
import { freePort } from "./harness/ports.ts";
import { TargetNode } from "./harness/target_node.ts";
import type { Target } from "./target.ts";
import type { NodeDescription, Topology } from "./topology.ts";
import type { Transcript } from "./harness/transcript.ts";

/** What every stage of a run shares. */
export interface StageOptions {
  /** What to run. */
  readonly target: Target;
  /** Where databases are made. */
  readonly databases: DatabaseServer;
  /** The secret of topologies that have one. */
  readonly secret: string;
  /** By what all deadlines are multiplied. */
  readonly scale: number;
  /** Where nodes' output is kept, if anywhere. */
  readonly keepLogs?: string | undefined;
  /** Where nodes get a directory each; whoever made it removes it. */
  readonly directory: string;
  /** Ends what is left where this process is killed. */
  readonly guard: Guard;
}

/** A topology that runs: its nodes and the suite's own peers. */
export interface Stage {
  /** The nodes, in the topology's order. */
  readonly nodes: readonly TargetNode[];
  /** The suite's peers, in the topology's order. */
  readonly peers: readonly PeerListener[];
  /** Whether others may use the nodes as well, so that counts are not the suite's alone. */
  readonly isShared: boolean;
  /** The transcript of the case that runs; what happens between cases is written nowhere. */
  transcript: Transcript | undefined;
  /** What is given to nodes that a case starts by itself. */
  startNode(description: StartDescription, signal: AbortSignal): Promise<TargetNode>;
  /** Makes a node as {@linkcode Stage.startNode} does, without starting it. */
  makeNode(description: StartDescription): Promise<TargetNode>;
  /** Makes a peer of the suite on a port of its own; it does not listen yet. */
  makePeer(label: string): Promise<PeerListener>;
  /** Stops what cases made by themselves, and sets the suite's peers back. */
  reset(): Promise<void>;
  /** Stops everything. */
  stop(): Promise<void>;
}

/** A node that a case starts by itself. */
export interface StartDescription {
  /** What it is called; `A` where it is left out. */
  readonly name?: string;
  /** Whom it dials, as `QUEEN_MESH_PEERS` says it; nobody where it is left out. */
  readonly peers?: string;
  /** Its secret; open mode where it is left out. */
  readonly secret?: string;
  /** The mesh port that it is told, and on which the suite looks for it; a free one if left out. */
  readonly meshPort?: number;
  /** Settings over the suite's defaults; undefined leaves a variable unset. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** What the suite sets by itself, so that nothing of its own environment gets in between. */
const OWN_SETTINGS =
  /^(QUEEN_|POP_WAIT_|PG_|DB_|DATABASE_URL$|FILE_BUFFER_|DEFAULT_SUBSCRIPTION_MODE$|HOST$|PORT$)/;

/** Nodes that the suite starts. */
export class OwnStage implements Stage {
  readonly nodes: TargetNode[] = [];
  readonly peers: PeerListener[] = [];
  readonly isShared = false;
  transcript: Transcript | undefined;
  readonly #options: StageOptions;
  readonly #topology: Topology;
  readonly #ownNodes: TargetNode[] = [];
  readonly #ownPeers: PeerListener[] = [];
  #database: ScratchDatabase | undefined;
  #count = 0;

  private constructor(topology: Topology, options: StageOptions) {
    this.#topology = topology;
    this.#options = options;
  }

  /**
   * Starts a topology and resolves when all of its nodes are ready.
   *
   * @throws {HarnessError} If that cannot be; nothing is left then.
   */
  static async start(
    topology: Topology,
    options: StageOptions,
    signal: AbortSignal,
    transcript: Transcript,
  ): Promise<Stage> {
    const stage = new OwnStage(topology, options);
    stage.transcript = transcript;
    try {
      await stage.#start(signal);
      stage.transcript = undefined;
      return stage;
    } catch (error) {
      await stage.stop();
      throw error;
    }
  }

  async startNode(description: StartDescription, signal: AbortSignal): Promise<TargetNode> {
    const node = await this.makeNode(description);
    await node.start(signal);
    return node;
  }

  async makeNode(
    { name = "A", peers = "", secret = "", meshPort, env = {} }: StartDescription,
  ): Promise<TargetNode> {
    const node = await this.#node(
      { name, peers: [], env: { ...this.#topology.env, QUEEN_MESH_PEERS: peers, ...env } },
      { meshPort: meshPort ?? await freePort(), secret },
    );
    this.#ownNodes.push(node);
    return node;
  }

  async makePeer(label: string): Promise<PeerListener> {
    const peer = this.#peer(label, await freePort());
    this.#ownPeers.push(peer);
    return peer;
  }

  async reset(): Promise<void> {
    const nodes = this.#ownNodes.splice(0);
    const peers = this.#ownPeers.splice(0);
    await Promise.all([
      ...nodes.map((node) => node.stop()),
      ...peers.map((peer) => peer.stop()),
      ...this.peers.map(async (peer) => {
        peer.mode = "read";
        await peer.listen();
      }),
    ]);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.nodes, ...this.#ownNodes].map((node) => node.stop()));
    await Promise.all([...this.peers, ...this.#ownPeers].map((peer) => peer.stop()));
    await this.#database?.drop();
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { suitePeers, nodes, env, secret } = this.#topology;
    const addresses = new Map<string, string>();
    for (const label of suitePeers) {
      const peer = this.#peer(label, await freePort());
      await peer.listen();
      this.peers.push(peer);
      addresses.set(label, peer.address);
    }
    const meshPorts = new Map<string, number>();
    for (const { name } of nodes) {
      const meshPort = await freePort();
      meshPorts.set(name, meshPort);
      addresses.set(name, `127.0.0.1:${meshPort}`);
    }
    for (const node of nodes) {
      const peers = node.peers.map((name) => addresses.get(name)!).join(",");
      this.nodes.push(
        await this.#node(
          { ...node, env: { ...env, QUEEN_MESH_PEERS: peers, ...node.env } },
          { meshPort: meshPorts.get(node.name)!, secret: secret ? this.#options.secret : "" },
        ),
      );
    }
    await Promise.all(this.nodes.map((node) => node.start(signal)));
  }

  #peer(label: string, port: number): PeerListener {
    return new PeerListener({ port, label, record: (line) => this.transcript?.add(line) });
  }

  async #node(
    { name, env = {} }: NodeDescription,
    { meshPort, secret }: { meshPort: number; secret: string },
  ): Promise<TargetNode> {
    const { target, scale, keepLogs, guard } = this.#options;
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const number = ++this.#count;
    const directory = await mkdtemp(join(this.#options.directory, `${name}-`));
    const settings: Record<string, string | undefined> = {
      HOST: "127.0.0.1",
      PORT: String(port),
      QUEEN_SERVER_ID: `node-${name}-${number}`,
      QUEEN_MESH_PORT: String(meshPort),
      QUEEN_SYNC_SECRET: secret,
      FILE_BUFFER_DIR: join(directory, "spool"),
      ...(target.database ? databaseEnv((await this.#scratchDatabase()).url) : {}),
      ...env,
    };
    return new TargetNode({
      name,
      url,
      readyUrl: target.ready.startsWith("/")
        ? `${url}${target.ready}`
        : target.ready.replaceAll("{PORT}", String(port)),
      meshHost: "127.0.0.1",
      meshPort,
      secret,
      scale,
      record: (line) => this.transcript?.add(line),
      process: {
        command: target.command,
        cwd: target.cwd,
        env: defined({ ...inherited(), ...target.env, ...settings }),
        logFile: keepLogs && join(keepLogs, `${this.#topology.name}-${name}-${number}.log`),
        guard,
      },
    });
  }

  async #scratchDatabase(): Promise<ScratchDatabase> {
    return this.#database ??= await this.#options.databases.create();
  }
}

function inherited(): Record<string, string | undefined> {
  const entries = Object.entries(process.env).filter(([name]) => !OWN_SETTINGS.test(name));
  return Object.fromEntries(entries);
}

function defined(env: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => value === undefined ? [] : [[name, value]]),
  );
}
