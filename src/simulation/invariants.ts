/**
 * Watches a whole simulated mesh: what every node is asked, what the network sees it do, and what it
 * says of itself. Whatever does not fit is a {@linkcode Violation}.
 *
 * @module
 */

import type { Endpoint } from "../mesh/runtime.ts";
import type { SendQueue } from "../mesh/send_queue.ts";
import type { MeshStats } from "../mesh/stats.ts";
import type { Message, OutgoingMessage } from "../protocol/messages.ts";
import type { SimulatedConnection } from "./connection.ts";
import { InboundWatch } from "./inbound_watch.ts";
import type { NetworkObserver, SimulatedNetwork } from "./network.ts";
import type { NodeSettings } from "./node_settings.ts";
import { type Asked, OutboundWatch } from "./outbound_watch.ts";
import type { SimulatedProcess } from "./process.ts";
import type { Report, Violation } from "./violation.ts";
import { frameBytes, textsOfOutgoing, type WireFrame, type WireHello } from "./wire.ts";

/** A node to watch. */
export interface WatchedNode {
  /** Its name, which is its host's. */
  readonly name: string;
  /** The process in which its mesh runs. */
  readonly process: SimulatedProcess;
  /** How it ought to behave. */
  readonly settings: NodeSettings;
  /** The names of its peers, in the order of its configuration; itself may be one. */
  readonly peers: readonly string[];
}

/** A HELLO as somebody on the way between two nodes can capture it. */
export interface CapturedHello {
  /** Who said it. */
  readonly from: string;
  /** To whom. */
  readonly to: string;
  /** The complete frame. */
  readonly bytes: Uint8Array;
}

/** How many captured HELLOs are kept, the latest ones. */
const CAPTURED_MAX = 16;

/** Watches one life of one node: from the start of its process to its death. */
export class NodeWatch {
  /** What is watched. */
  readonly node: WatchedNode;
  /** The receiving side. */
  readonly inbound: InboundWatch;
  readonly #outbound: ReadonlyMap<string, OutboundWatch>;
  readonly #asked: Asked = { texts: [], frames: 0, coalesced: 0 };
  readonly #network: SimulatedNetwork;
  readonly #report: Report;

  /** Watches `node`: {@linkcode Invariants.watch} does this. */
  constructor(
    node: WatchedNode,
    options: {
      readonly network: SimulatedNetwork;
      readonly report: Report;
      readonly onHello: (hello: CapturedHello) => void;
    },
  ) {
    const { network, report } = options;
    const { name, settings } = node;
    const onHello = (to: string) => ({ nonce }: WireHello, { type, payload }: WireFrame) => {
      this.inbound.noteOwn(nonce);
      options.onHello({ from: name, to, bytes: frameBytes(type, payload) });
    };
    const now = () => network.clock.now();
    this.node = node;
    this.#network = network;
    this.#report = report;
    this.inbound = new InboundWatch({ node: name, settings, now, report });
    this.#outbound = new Map(
      node.peers.filter((peer) => peer !== name).map((peer) => [
        peer,
        new OutboundWatch({
          node: name,
          peer,
          settings,
          asked: this.#asked,
          now,
          onHello: onHello(peer),
          report,
        }),
      ]),
    );
  }

  /** The sending side towards a peer; undefined for a peer that is the node itself. */
  outbound(peer: string): OutboundWatch | undefined {
    return this.#outbound.get(peer);
  }

  /** Watches the queue that the node keeps for the peer of that place in its configuration. */
  watchQueue(index: number, queue: SendQueue): SendQueue {
    const watch = this.#outbound.get(this.node.peers[index] ?? "");
    return watch === undefined ? queue : watch.watchQueue(queue);
  }

  /** The node is about to be asked to broadcast these messages in one turn. */
  asked(messages: readonly OutgoingMessage[]): void {
    let isJoined = false;
    for (const message of messages) {
      this.#asked.texts.push(...textsOfOutgoing(message));
      this.#asked.frames++;
      // Wakes that are asked for in one turn leave together.
      const isWake = message.type === "message_available";
      if (isWake && isJoined) this.#asked.coalesced++;
      isJoined = isWake;
    }
  }

  /** Checks what must hold while all is at rest. */
  check(stats: MeshStats): void {
    if (!stats.enabled) return;
    for (const peer of stats.peers) this.#outbound.get(peer.host)?.check(peer);
    this.inbound.check(stats);
  }

  /** Checks that a mesh that has been closed has left nothing. */
  checkClosed(): void {
    const { process, name } = this.node;
    if (process.timers > 0) this.#report("close", `${name} left ${process.timers} timers`);
    if (process.sockets > 0) this.#report("close", `${name} left ${process.sockets} sockets`);
    if (this.#network.breaches.length > 0) this.#report("seam", this.#network.breaches.join("; "));
  }
}

/** Watches every node of a simulated mesh. */
export class Invariants implements NetworkObserver {
  /** The latest HELLOs, oldest first. */
  readonly captured: CapturedHello[] = [];
  readonly #network: SimulatedNetwork;
  readonly #note: ((text: string) => void) | null;
  readonly #nodes = new Map<SimulatedProcess, NodeWatch>();
  readonly #peersByAddress: ReadonlyMap<string, string>;
  #violation: Violation | null = null;

  /**
   * Watches a network from now on.
   *
   * @param network The network.
   * @param peersByAddress Which node is meant by an address, those that lead nowhere included.
   * @param note Takes the lines of a trace; null where there is none.
   */
  constructor(
    network: SimulatedNetwork,
    options: {
      readonly peersByAddress: ReadonlyMap<string, string>;
      readonly note: ((text: string) => void) | null;
    },
  ) {
    this.#network = network;
    this.#peersByAddress = options.peersByAddress;
    this.#note = options.note;
    network.observer = this;
  }

  /** The first thing that went wrong, or null. */
  get violation(): Violation | null {
    return this.#violation ??
      (this.#network.breaches.length === 0
        ? null
        : { rule: "seam", text: this.#network.breaches.join("; ") });
  }

  /** Records what went wrong, unless something has before. */
  readonly report: Report = (rule, text) => {
    this.#note?.(`VIOLATION ${rule}: ${text}`);
    this.#violation ??= { rule, text };
  };

  /** Watches one more life of a node. */
  watch(node: WatchedNode): NodeWatch {
    const watch = new NodeWatch(node, {
      network: this.#network,
      report: this.report,
      onHello: (hello) => {
        this.captured.push(hello);
        if (this.captured.length > CAPTURED_MAX) this.captured.shift();
      },
    });
    this.#nodes.set(node.process, watch);
    return watch;
  }

  /** Watches a node no more: it is dead or has been closed. */
  unwatch(process: SimulatedProcess): void {
    this.#nodes.delete(process);
  }

  /** A node has dispatched a message. */
  dispatched(process: SimulatedProcess, message: Message, from: string): void {
    this.#nodes.get(process)?.inbound.dispatched(message, from);
  }

  resolving(process: SimulatedProcess, host: string): void {
    this.#nodes.get(process)?.outbound(host)?.attempt();
  }

  unresolved(process: SimulatedProcess, host: string): void {
    this.#note?.(`${process.host.name} cannot resolve ${host}`);
    this.#nodes.get(process)?.outbound(host)?.failed();
  }

  dialling(process: SimulatedProcess, endpoint: Endpoint): void {
    this.#note?.(`${process.host.name} dials ${endpoint.ip}`);
    this.#outbound(process, endpoint.ip)?.dialling();
  }

  unconnected(process: SimulatedProcess, endpoint: Endpoint): void {
    this.#note?.(`${process.host.name} cannot connect to ${endpoint.ip}`);
    this.#outbound(process, endpoint.ip)?.failed();
  }

  opened(connection: SimulatedConnection): void {
    this.#note?.(`${connection.label} opened`);
    this.#outbound(connection.owner, connection.remote.ip)?.opened(connection);
  }

  accepted(connection: SimulatedConnection): void {
    this.#note?.(`${connection.label} accepted`);
    this.#watchOf(connection)?.inbound.accepted(connection);
  }

  taken(connection: SimulatedConnection, bytes: Uint8Array): void {
    this.#note?.(`${connection.label} took ${bytes.length} bytes`);
    const watch = this.#watchOf(connection);
    if (watch === undefined) return;
    if (connection.side === "accepted") {
      this.report("wire", `${connection.label}: a listener wrote ${bytes.length} bytes`);
    } else this.#outbound(connection.owner, connection.remote.ip)?.taken(connection, bytes);
  }

  read(connection: SimulatedConnection, bytes: Uint8Array): void {
    this.#note?.(`${connection.label} read ${bytes.length} bytes`);
    if (connection.side === "accepted") this.#watchOf(connection)?.inbound.read(connection, bytes);
  }

  closed(connection: SimulatedConnection): void {
    this.#note?.(`${connection.label} closed`);
    if (connection.side === "accepted") this.#watchOf(connection)?.inbound.closed(connection);
    else this.#outbound(connection.owner, connection.remote.ip)?.closed(connection);
  }

  #watchOf(connection: SimulatedConnection): NodeWatch | undefined {
    return connection.owner === null ? undefined : this.#nodes.get(connection.owner);
  }

  #outbound(process: SimulatedProcess | null, ip: string): OutboundWatch | undefined {
    if (process === null) return undefined;
    const peer = this.#peersByAddress.get(ip);
    return peer === undefined ? undefined : this.#nodes.get(process)?.outbound(peer);
  }
}
