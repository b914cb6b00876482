/**
 * A mesh of three nodes that lives through a random schedule of failures, all from one seed.
 *
 * @example
 * ```ts ignore
 * const outcome = await simulate(42);
 * if (outcome.violation !== null) console.log((await simulate(42, { isTraced: true })).trace);
 * ```
 *
 * @module
 */

import { BACKOFF_MS_MAX } from "../mesh/backoff.ts";
import { type Action, ACTIONS, type Scene } from "./actions.ts";
import { Attacker } from "./attacker.ts";
import { Invariants } from "./invariants.ts";
import { MessageSource } from "./message_source.ts";
import { SimulatedNetwork } from "./network.ts";
import { Prng } from "./prng.ts";
import { drawProfile, type Profile } from "./profile.ts";
import { type Plant, SimulatedNode } from "./simulated_node.ts";
import type { Violation } from "./violation.ts";
import { settle } from "./virtual_clock.ts";
import { textsOfOutgoing } from "./wire.ts";

/** The names of the nodes. */
const NAMES = ["a", "b", "c"] as const;

/** A dial that has no answer is given up after this many milliseconds. */
const DIAL_MS_MAX = 5000;

/** A port that could not be bound is tried again after this many milliseconds. */
const BIND_RETRY_MS = 5000;

/** How long a healed mesh may take for anything that needs no timer of the protocol. */
const BEAT_MS = 1000;

/** How often a healed mesh is given that time to write what waits. */
const BEATS_MAX = 60;

/** What comes of one run. */
export interface Outcome {
  /** The seed. */
  readonly seed: number;
  /** The first thing that went wrong; null where nothing did. */
  readonly violation: Violation | null;
  /** How much virtual time went by, in milliseconds. */
  readonly elapsedMs: number;
  /** What happened, line by line; empty unless it was asked for. */
  readonly trace: readonly string[];
}

/** How to run. */
export interface SimulateOptions {
  /** Changes what every mesh is made from: a planted fault. */
  readonly plant?: Plant;
  /** Whether to record what happens. It changes nothing that happens. */
  readonly isTraced?: boolean;
}

/** Runs the simulated mesh of one seed, to its end or to the first thing that goes wrong. */
export async function simulate(seed: number, options: SimulateOptions = {}): Promise<Outcome> {
  const simulation = new Simulation(seed, options);
  await simulation.run();
  return simulation.outcome;
}

class Simulation {
  readonly #seed: number;
  readonly #prng: Prng;
  readonly #profile: Profile;
  readonly #network: SimulatedNetwork;
  readonly #invariants: Invariants;
  readonly #scene: Scene;
  readonly #trace: string[] = [];

  constructor(seed: number, { plant = (setup) => setup, isTraced = false }: SimulateOptions) {
    this.#seed = seed;
    const prng = this.#prng = new Prng(seed);
    const profile = this.#profile = drawProfile(prng);
    const network = this.#network = new SimulatedNetwork(profile.network);
    const note = isTraced
      ? (text: string) => void this.#trace.push(`${network.clock.now().toFixed(3)} ${text}`)
      : null;
    const addresses = new Map<string, readonly string[]>();
    const peersByAddress = new Map<string, string>();
    for (const [index, name] of NAMES.entries()) {
      const dead = profile.hasDeadAddresses ? [`10.9.9.${index}`] : [];
      addresses.set(name, [...dead, ...network.host(name).addresses]);
      network.setName(name, addresses.get(name)!);
      for (const address of addresses.get(name)!) peersByAddress.set(address, name);
    }
    const invariants = this.#invariants = new Invariants(network, { peersByAddress, note });
    this.#scene = {
      network,
      prng,
      profile,
      addresses,
      messages: new MessageSource(prng),
      nodes: NAMES.map((name) =>
        new SimulatedNode({
          host: network.host(name),
          names: NAMES,
          profile,
          invariants,
          plant,
          note,
        })
      ),
      attacker: new Attacker({
        host: network.host("x"),
        prng: prng.fork(),
        secret: profile.secret,
        captured: invariants.captured,
      }),
    };
    note?.(`profile ${JSON.stringify(profile)}`);
    this.#note = note;
  }

  readonly #note: ((text: string) => void) | null;

  get outcome(): Outcome {
    return {
      seed: this.#seed,
      violation: this.#invariants.violation,
      elapsedMs: this.#network.clock.now(),
      trace: this.#trace,
    };
  }

  get #hasFailed(): boolean {
    return this.#invariants.violation !== null;
  }

  async run(): Promise<void> {
    try {
      await this.#live();
    } catch (error) {
      this.#invariants.report("crash", error instanceof Error ? error.stack! : String(error));
    }
    for (const node of this.#scene.nodes) node.kill("reset");
    this.#network.host("x").kill("reset");
  }

  async #live(): Promise<void> {
    const { nodes, prng } = this.#scene;
    const actions = this.#drawActions();
    for (const node of nodes) node.start({ secret: this.#profile.secret });
    for (let step = 0; step < this.#profile.steps && !this.#hasFailed; step++) {
      await this.#advance(prng.integer(0, this.#profile.gapMsMax));
      this.#check();
      if (this.#hasFailed) break;
      const done = await prng.pick(actions)(this.#scene);
      if (done !== null) this.#note?.(`* ${done}`);
      await settle();
      this.#check();
    }
    if (!this.#hasFailed) await this.#heal();
    if (!this.#hasFailed) await this.#close();
  }

  /** Lets time pass, but no further than to the first thing that goes wrong. */
  #advance(ms: number): Promise<void> {
    const { clock } = this.#network;
    return clock.runUntil(clock.now() + ms, () => this.#hasFailed);
  }

  /** Some of the actions, each as often as it is to happen: every run is about something else. */
  #drawActions(): Action[] {
    const { prng } = this.#scene;
    const drawn: Action[] = [ACTIONS["broadcast"]!, ACTIONS["start"]!];
    for (const action of Object.values(ACTIONS)) {
      const weight = prng.pick([0, 0, 1, 1, 2, 4]);
      for (let i = 0; i < weight; i++) drawn.push(action);
    }
    return drawn;
  }

  #check(): void {
    for (const node of this.#scene.nodes) {
      const { stats, watch } = node;
      if (stats !== null) watch?.check(stats);
    }
  }

  /** Ends every failure, and sees that all nodes find each other and that messages arrive. */
  async #heal(): Promise<void> {
    const { nodes, network, addresses, profile } = this.#scene;
    this.#note?.("* everything heals");
    for (const node of nodes) {
      network.setName(node.name, addresses.get(node.name)!);
      node.host.bindFailureCode = null;
      node.host.acceptFailures = 0;
      if (node.isMisconfigured) node.kill("reset");
      if (!node.isRunning) node.start({ secret: profile.secret });
      node.host.process.unstall();
      for (const other of NAMES) {
        const link = network.link(node.name, other);
        [link.delayMsMin, link.delayMsMax] = profile.network.delayMs!;
      }
    }
    network.healAll();
    await settle();
    const isBound = ({ stats }: SimulatedNode) => stats?.enabled === true && stats.running;
    if (!nodes.every(isBound)) await this.#advance(BIND_RETRY_MS);
    // A dead address costs a dial its share of the time, in the attempt that succeeds as well.
    const deadMs = profile.hasDeadAddresses ? DIAL_MS_MAX / 2 : 0;
    await this.#advance(BACKOFF_MS_MAX + DIAL_MS_MAX + deadMs + BEAT_MS);
    this.#check();
    this.#checkConnected();
    if (this.#hasFailed) return;
    const sent = nodes.map((node) => {
      const message = this.#scene.messages.short();
      node.broadcast([message]);
      return { node, text: textsOfOutgoing(message)[0]! };
    });
    await this.#advance(BEAT_MS);
    // Over a slow way, what was asked for before has to go first.
    for (let beat = 0; beat < BEATS_MAX && !nodes.every(isDrained); beat++) {
      await this.#advance(BEAT_MS);
    }
    this.#check();
    for (const { node, text } of sent) {
      for (const other of nodes) {
        if (other === node || other.watch?.inbound.hasDispatched(text)) continue;
        this.#invariants.report("heal", `${other.name} has not heard ${node.name}`);
      }
    }
  }

  #checkConnected(): void {
    for (const node of this.#scene.nodes) {
      for (const name of NAMES) {
        if (name === node.name || node.watch?.outbound(name)?.isGreeted) continue;
        this.#invariants.report("heal", `${node.name} is not connected to ${name}`);
      }
    }
  }

  async #close(): Promise<void> {
    this.#note?.("* everything closes");
    for (const node of this.#scene.nodes) await node.close();
  }
}

/** Whether nothing waits in a node's queues. */
function isDrained({ stats }: SimulatedNode): boolean {
  return stats?.enabled === true && stats.peers.every((peer) => peer.queued === 0);
}
