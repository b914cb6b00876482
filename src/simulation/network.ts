/**
 * A network of simulated hosts, in which every random choice comes from a seed and time is virtual.
 * For unit tests of the mesh as much as for whole simulated meshes.
 *
 * @example
 * ```ts ignore
 * const network = new SimulatedNetwork({ seed: 1 });
 * const mesh = new Mesh({ runtime: network.host("a").runtime, ... }); // peers: [{ host: "b", ... }]
 * const listener = await RawListener.bind(network.host("b"), 6633); // speaks bytes: raw_peer.ts
 * await network.clock.advance(1000);
 * network.cut("a", "b"); // holds every packet, both ways
 * network.heal("a", "b");
 * network.host("b").kill("reset"); // or "end", or "vanish"
 * ```
 *
 * @module
 */

import type { Endpoint } from "../mesh/runtime.ts";
import { SimulatedConnection } from "./connection.ts";
import { SimulatedHost } from "./host.ts";
import { Link, Pipe } from "./link.ts";
import { Prng } from "./prng.ts";
import type { SimulatedProcess } from "./process.ts";
import { VirtualClock } from "./virtual_clock.ts";

/** Whoever watches what processes do with the network. Called before the process learns of it. */
export interface NetworkObserver {
  /** A process looks a name up: a dial begins. */
  resolving?(process: SimulatedProcess, host: string): void;
  /** A look-up has failed or was aborted. */
  unresolved?(process: SimulatedProcess, host: string): void;
  /** A process connects to an endpoint. */
  dialling?(process: SimulatedProcess, endpoint: Endpoint): void;
  /** An attempt to connect has failed or was aborted. */
  unconnected?(process: SimulatedProcess, endpoint: Endpoint): void;
  /** A dialled end is open. */
  opened?(connection: SimulatedConnection): void;
  /** A process has accepted an end. */
  accepted?(connection: SimulatedConnection): void;
  /** A kernel has taken bytes that were written to this end. */
  taken?(connection: SimulatedConnection, bytes: Uint8Array): void;
  /** A process has read bytes from this end. The bytes are only valid during the call. */
  read?(connection: SimulatedConnection, bytes: Uint8Array): void;
  /** A process has closed this end. */
  closed?(connection: SimulatedConnection): void;
}

/** How a simulated network behaves. */
export interface SimulatedNetworkOptions {
  /** From which every random choice comes. Defaults to 1. */
  readonly seed?: number;
  /** How long a packet travels, at least and at most. Defaults to 1 ms, always. */
  readonly delayMs?: readonly [min: number, max: number];
  /** How long a look-up of a name takes. Defaults to 0. */
  readonly dnsDelayMs?: number;
  /** How much the kernels hold of what was written and not read, per direction. Defaults to 64 KiB. */
  readonly capacityBytes?: number;
  /** How often a write is taken in part although there is room, from 0 to 1. Defaults to 0. */
  readonly partialWrites?: number;
  /** How often what was taken arrives in random pieces, from 0 to 1. Defaults to 0. */
  readonly segmentation?: number;
}

/** What a name resolves to: addresses, an error, or no answer. */
export type NameAnswer = readonly string[] | "failing" | "hanging";

/** How a connection is lost. */
export interface Loss {
  /** Whether both ends see an error, or the orderly end of the stream. */
  readonly how: "reset" | "end";
  /** Whether what is on its way is lost. Defaults to false. */
  readonly isLossy?: boolean;
}

/** A network of simulated hosts. */
export class SimulatedNetwork {
  /** The time of everything in this network. */
  readonly clock: VirtualClock = new VirtualClock();
  /** Where random choices come from. */
  readonly prng: Prng;
  /** How long a look-up of a name takes. */
  dnsDelayMs: number;
  /** What the kernels hold per direction of a connection that is dialled from now on. */
  capacityBytes: number;
  /** How often a write is taken in part although there is room, from 0 to 1. */
  partialWrites: number;
  /** How often what was taken arrives in random pieces, from 0 to 1. */
  segmentation: number;
  /** Whoever watches; nobody at first. */
  observer: NetworkObserver = {};
  /** What processes did against the contracts of the seam, in words. */
  readonly breaches: string[] = [];

  readonly #delayMs: readonly [number, number];
  readonly #hosts = new Map<string, SimulatedHost>();
  readonly #hostsByAddress = new Map<string, SimulatedHost>();
  readonly #names = new Map<string, NameAnswer>();
  readonly #links = new Map<SimulatedHost, Map<SimulatedHost, Link>>();
  readonly #connections = new Set<SimulatedConnection>();
  readonly #nowhere: SimulatedHost;
  #connectionIdLast = 0;

  /** Makes an empty network. */
  constructor(options: SimulatedNetworkOptions = {}) {
    this.prng = new Prng(options.seed ?? 1);
    this.#delayMs = options.delayMs ?? [1, 1];
    this.dnsDelayMs = options.dnsDelayMs ?? 0;
    this.capacityBytes = options.capacityBytes ?? 64 * 1024;
    this.partialWrites = options.partialWrites ?? 0;
    this.segmentation = options.segmentation ?? 0;
    this.#nowhere = new SimulatedHost(this, "nowhere", []);
    this.#nowhere.isUp = false;
  }

  /** The dialled ends of the connections and attempts that at least one process has open. */
  get connections(): ReadonlySet<SimulatedConnection> {
    return this.#connections;
  }

  /**
   * The host of that name, made where there is none. Its name resolves to its addresses.
   *
   * @param name A name, such as `a`.
   * @param addresses Its addresses where it is made; by default one IPv4 address.
   */
  host(name: string, addresses?: readonly string[]): SimulatedHost {
    const known = this.#hosts.get(name);
    if (known !== undefined) return known;
    const host = new SimulatedHost(this, name, addresses ?? [`10.0.0.${this.#hosts.size + 1}`]);
    this.#hosts.set(name, host);
    this.#names.set(name, host.addresses);
    for (const address of host.addresses) this.#hostsByAddress.set(address, host);
    return host;
  }

  /** Changes what a name resolves to. */
  setName(name: string, answer: NameAnswer): void {
    this.#names.set(name, answer);
  }

  /** What a name or an IP literal resolves to now. `localhost` is the host that asks. */
  lookUp(name: string): NameAnswer {
    if (/^[\d.]+$/.test(name) || name.includes(":")) return [name];
    return this.#names.get(name) ?? (name === "localhost" ? ["::1", "127.0.0.1"] : "failing");
  }

  /** The way from one host to another, to change its delay or to cut it alone. */
  link(from: string, to: string): Link {
    return this.#linkBetween(this.host(from), this.host(to));
  }

  /**
   * Holds every packet between two hosts, both ways, until {@linkcode SimulatedNetwork.heal | heal}.
   * To make a half-dead connection, cut one {@linkcode SimulatedNetwork.link | link} alone.
   */
  cut(a: string, b: string): void {
    this.link(a, b).cut();
    this.link(b, a).cut();
  }

  /** Sends what was held on its way again. */
  heal(a: string, b: string): void {
    this.link(a, b).heal();
    this.link(b, a).heal();
  }

  /** Heals every link. */
  healAll(): void {
    for (const links of this.#links.values()) {
      for (const link of links.values()) link.heal();
    }
  }

  /** The dialled ends of the open connections that one host has dialled to another. */
  between(dialler: string, listener: string): SimulatedConnection[] {
    return [...this.#connections].filter((connection) =>
      connection.state === "open" && connection.host.name === dialler &&
      connection.peer.host.name === listener
    );
  }

  /** Loses a connection, as a middlebox does: both ends see its end once the news has travelled. */
  lose(connection: SimulatedConnection, { how, isLossy = false }: Loss): void {
    connection.inject({ kind: how }, isLossy);
    connection.peer.inject({ kind: how }, isLossy);
  }

  /** Breaks every connection between two hosts at both ends at once, as a long cut does in the end. */
  timeOut(a: string, b: string): void {
    for (const connection of [...this.#connections]) {
      const names = [connection.host.name, connection.peer.host.name];
      if (!names.includes(a) || !names.includes(b)) continue;
      connection.break("ETIMEDOUT");
      connection.peer.break("ETIMEDOUT");
    }
  }

  /** Makes both ends of a connection that a process dials. */
  dial(owner: SimulatedProcess, remote: Endpoint): SimulatedConnection {
    const host = owner.host;
    const target = isLoopback(remote.ip) ? host : this.#hostsByAddress.get(remote.ip);
    const id = ++this.#connectionIdLast;
    const { capacityBytes } = this;
    const peerHost = target ?? this.#nowhere;
    const local = { ip: host.addresses[0] ?? remote.ip, port: host.drawPort() };
    const end = new SimulatedConnection({
      id,
      side: "dialled",
      host,
      owner,
      remote,
      capacityBytes,
    });
    const peer = new SimulatedConnection({
      id,
      side: "accepted",
      host: peerHost,
      owner: null,
      remote: isLoopback(remote.ip) ? { ip: remote.ip, port: local.port } : local,
      capacityBytes,
    });
    end.wire(peer, new Pipe(this.clock, this.#linkBetween(host, peerHost), peer));
    peer.wire(end, new Pipe(this.clock, this.#linkBetween(peerHost, host), end));
    this.#connections.add(end);
    return end;
  }

  /** Counts a connection no more, given either of its ends. */
  forget(end: SimulatedConnection): void {
    this.#connections.delete(end.side === "dialled" ? end : end.peer);
  }

  /** How many of at most `count` bytes a kernel takes now. */
  drawTaken(count: number): number {
    return this.prng.chance(this.partialWrites) ? this.prng.integer(1, count) : count;
  }

  /** The pieces in which bytes arrive. */
  drawSegments(bytes: Uint8Array): Uint8Array[] {
    if (!this.prng.chance(this.segmentation)) return [bytes];
    const segments: Uint8Array[] = [];
    let start = 0;
    for (let pieces = this.prng.integer(1, 4); pieces > 0 && start < bytes.length; pieces--) {
      const longest = bytes.length - start;
      const length = pieces === 1
        ? longest
        : this.prng.integer(1, this.prng.chance(0.3) ? Math.min(4, longest) : longest);
      segments.push(bytes.subarray(start, start += length));
    }
    return segments;
  }

  /** Records what a process did against a contract of the seam. */
  blame(breach: string): void {
    this.breaches.push(breach);
  }

  #linkBetween(from: SimulatedHost, to: SimulatedHost): Link {
    let links = this.#links.get(from);
    if (links === undefined) this.#links.set(from, links = new Map());
    let link = links.get(to);
    if (link === undefined) links.set(to, link = new Link(this.prng, this.#delayMs));
    return link;
  }
}

function isLoopback(ip: string): boolean {
  return ip === "::1" || ip.startsWith("127.");
}
