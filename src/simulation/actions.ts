/**
 * What can happen to a simulated mesh.
 *
 * @module
 */

import type { Attacker } from "./attacker.ts";
import type { SimulatedConnection } from "./connection.ts";
import type { MessageSource } from "./message_source.ts";
import type { SimulatedNetwork } from "./network.ts";
import type { Prng } from "./prng.ts";
import type { Death } from "./process.ts";
import type { Profile } from "./profile.ts";
import type { SimulatedNode } from "./simulated_node.ts";

/** What an action works on. */
export interface Scene {
  /** The network. */
  readonly network: SimulatedNetwork;
  /** Random choices. */
  readonly prng: Prng;
  /** What holds for the whole run. */
  readonly profile: Profile;
  /** The nodes. */
  readonly nodes: readonly SimulatedNode[];
  /** Messages to broadcast. */
  readonly messages: MessageSource;
  /** Somebody else. */
  readonly attacker: Attacker;
  /** The addresses of each node's name, while all is well. */
  readonly addresses: ReadonlyMap<string, readonly string[]>;
}

/** Does something and says what; null where there was nothing to do. */
export type Action = (scene: Scene) => string | null | Promise<string | null>;

const DEATHS: readonly Death[] = ["reset", "end", "vanish"];

/** Every action, by name. */
export const ACTIONS: Readonly<Record<string, Action>> = {
  broadcast({ prng, nodes, messages }) {
    const node = prng.pick(nodes);
    const message = messages.any();
    node.broadcast([message]);
    return `${node.name} broadcasts ${message.type}`;
  },

  burst({ prng, nodes, messages }) {
    const node = prng.pick(nodes);
    const burst = messages.many(prng.integer(2, 30));
    node.broadcast(burst);
    return `${node.name} broadcasts ${burst.length} messages in one turn`;
  },

  /** More than any queue holds. */
  overflow({ prng, nodes, messages, profile }) {
    const node = prng.pick(nodes);
    const isLong = prng.chance(0.5) && profile.bytesMax < 100_000;
    const count = isLong ? 10 : profile.framesMax + 5;
    const make = () => isLong ? messages.long(profile.bytesMax / 8) : messages.short();
    node.broadcast(Array.from({ length: count }, make));
    return `${node.name} broadcasts ${count} ${isLong ? "long" : "short"} messages in one turn`;
  },

  lose({ prng, network }) {
    const connection = drawConnection(prng, network);
    if (connection === null) return null;
    const how = prng.pick(["reset", "end"] as const);
    const isLossy = prng.chance(0.5);
    network.lose(connection, { how, isLossy });
    return `${connection.label} is lost: ${how}${isLossy ? ", with what is on its way" : ""}`;
  },

  cut({ prng, network, nodes }) {
    const [a, b] = drawPair(prng, nodes);
    network.cut(a.name, b.name);
    return `cut between ${a.name} and ${b.name}`;
  },

  "cut one way"({ prng, network, nodes }) {
    const [a, b] = drawPair(prng, nodes);
    network.link(a.name, b.name).cut();
    return `cut from ${a.name} to ${b.name}`;
  },

  heal({ prng, network, nodes }) {
    const [a, b] = drawPair(prng, nodes);
    network.heal(a.name, b.name);
    return `heal between ${a.name} and ${b.name}`;
  },

  "time out"({ prng, network, nodes }) {
    const [a, b] = drawPair(prng, nodes);
    if (!network.link(a.name, b.name).isCut) return null;
    network.timeOut(a.name, b.name);
    return `connections between ${a.name} and ${b.name} time out`;
  },

  slow({ prng, network, nodes }) {
    const [a, b] = drawPair(prng, nodes);
    const link = network.link(a.name, b.name);
    [link.delayMsMin, link.delayMsMax] = prng.pick([[0, 0], [1, 5], [20, 200], [100, 900]]);
    return `${a.name} to ${b.name} takes ${link.delayMsMin} to ${link.delayMsMax} ms`;
  },

  stall({ prng, nodes }) {
    const node = prng.pick(nodes);
    if (!node.isRunning) return null;
    node.host.process.stall();
    return `${node.name} stops reading`;
  },

  unstall({ prng, nodes }) {
    const node = prng.pick(nodes);
    if (!node.isRunning || !node.host.process.isStalled) return null;
    node.host.process.unstall();
    return `${node.name} reads on`;
  },

  kill({ prng, nodes }) {
    const node = prng.pick(nodes);
    if (!node.isRunning) return null;
    const death = prng.pick(DEATHS);
    node.kill(death);
    return `${node.name} is killed: ${death}`;
  },

  async close({ prng, nodes }) {
    const node = prng.pick(nodes);
    if (!node.isRunning) return null;
    await node.close();
    return `${node.name} is closed`;
  },

  start({ prng, nodes, profile }) {
    const down = nodes.filter((node) => !node.isRunning);
    if (down.length === 0) return null;
    const node = prng.pick(down);
    const isMisconfigured = prng.chance(0.25);
    node.start({ secret: isMisconfigured ? "wrong" : profile.secret });
    return `${node.name} starts${isMisconfigured ? " with a wrong secret" : ""}`;
  },

  "bind failures"({ prng, nodes }) {
    const { host, name } = prng.pick(nodes);
    host.bindFailureCode = host.bindFailureCode === null ? "EADDRINUSE" : null;
    return `${name} ${host.bindFailureCode === null ? "can" : "cannot"} bind its port`;
  },

  "accept failures"({ prng, nodes }) {
    const { host, name } = prng.pick(nodes);
    host.acceptFailures = prng.integer(1, 3);
    return `${name} fails to accept ${host.acceptFailures} times`;
  },

  names({ prng, network, nodes, addresses }) {
    const { name } = prng.pick(nodes);
    const answer = prng.pick(["failing", "hanging", addresses.get(name)!] as const);
    network.setName(name, answer);
    return `${name} resolves to ${answer}`;
  },

  attack({ prng, nodes, attacker }) {
    const node = prng.pick(nodes);
    const kind = attacker.attack(node.host);
    return `attack on ${node.name}: ${kind}`;
  },
};

function drawPair(prng: Prng, nodes: readonly SimulatedNode[]): [SimulatedNode, SimulatedNode] {
  const first = prng.integer(0, nodes.length - 1);
  const second = (first + prng.integer(1, nodes.length - 1)) % nodes.length;
  return [nodes[first]!, nodes[second]!];
}

function drawConnection(prng: Prng, network: SimulatedNetwork): SimulatedConnection | null {
  const open = [...network.connections].filter(({ state }) => state === "open");
  return open.length === 0 ? null : prng.pick(open);
}
