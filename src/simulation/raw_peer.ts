/**
 * The other side of a connection in a test: it speaks bytes, and no protocol.
 *
 * @module
 */

import type { Connection, Listener } from "../mesh/runtime.ts";
import type { SimulatedHost } from "./host.ts";
import { settle } from "./virtual_clock.ts";

/**
 * One connection that a test speaks by hand. It reads all that arrives until it is stalled.
 *
 * @example
 * ```ts ignore
 * const dialler = await RawPeer.dial(network.host("b"), { host: "a", port: 6633 });
 * await dialler.send(bytes);
 * const listener = await RawListener.bind(network.host("b"), 6633);
 * await network.clock.advance(100);
 * listener.peers[0]?.received; // what the mesh of host a has written
 * ```
 */
export class RawPeer {
  /** The connection underneath. */
  readonly connection: Connection;
  #received: Uint8Array = new Uint8Array(0);
  #isEnded = false;
  #error: unknown = null;

  /** Speaks over `connection`. */
  constructor(connection: Connection) {
    this.connection = connection;
    this.#readAll();
  }

  /** Connects from `from` to a host by its name or address, and moves time on until it has. */
  static async dial(
    from: SimulatedHost,
    to: { readonly host: string; readonly port: number },
  ): Promise<RawPeer> {
    const { clock } = from.network;
    const { network } = from.runtime;
    const { signal } = new AbortController();
    let outcome: { peer: RawPeer } | { error: unknown } | null = null;
    const dialling = async () => {
      const [ip] = await network.resolve(to.host, { signal });
      return new RawPeer(await network.connect({ ip: ip!, port: to.port }, { signal }));
    };
    dialling().then((peer) => outcome = { peer }, (error) => outcome = { error });
    await settle();
    while (outcome === null && clock.pending > 0) await clock.step();
    const done = outcome as { peer: RawPeer } | { error: unknown } | null;
    if (done === null) throw new Error(`Nothing answers at ${to.host}:${to.port}`);
    if ("error" in done) throw done.error;
    return done.peer;
  }

  /** All the bytes that have arrived. */
  get received(): Uint8Array {
    return this.#received;
  }

  /** Whether the stream has ended, in order or not. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Why the stream ended, where it broke; else null. */
  get error(): unknown {
    return this.#error;
  }

  /** Writes all of `bytes`; resolves once the kernel has taken them, which may need time. */
  async send(bytes: Uint8Array): Promise<void> {
    for (let start = 0; start < bytes.length;) {
      start += await this.connection.write(bytes.subarray(start));
    }
  }

  /** Closes the connection. */
  close(): void {
    this.connection.close();
  }

  async #readAll(): Promise<void> {
    const buffer = new Uint8Array(64 * 1024);
    try {
      for (let count; (count = await this.connection.read(buffer)) !== null;) {
        const joined = new Uint8Array(this.#received.length + count);
        joined.set(this.#received);
        joined.set(buffer.subarray(0, count), this.#received.length);
        this.#received = joined;
      }
    } catch (error) {
      this.#error = error;
    }
    this.#isEnded = true;
  }
}

/** A port whose connections a test speaks by hand. */
export class RawListener {
  /** The listener underneath. */
  readonly listener: Listener;
  /** The connections accepted so far, closed ones included, in order. */
  readonly peers: RawPeer[] = [];

  /** Accepts all that comes to `listener`. */
  constructor(listener: Listener) {
    this.listener = listener;
    this.#acceptAll();
  }

  /** Binds a port on `host`. To stall its peers, stall `host.process`. */
  static async bind(host: SimulatedHost, port: number): Promise<RawListener> {
    return new RawListener(await host.runtime.network.listen({ port }));
  }

  /** Unbinds the port and closes what was accepted. */
  close(): void {
    this.listener.close();
    for (const peer of this.peers) peer.close();
  }

  async #acceptAll(): Promise<void> {
    for (let connection; (connection = await this.listener.accept()) !== null;) {
      this.peers.push(new RawPeer(connection));
    }
  }
}
