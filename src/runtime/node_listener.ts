/**
 * One server of `node:net`, held to the contract of a listener.
 *
 * @module
 */

import type { AddressInfo, Server, Socket } from "node:net";
import type { Connection, Listener } from "../mesh/runtime.ts";
import { NodeConnection } from "./node_connection.ts";

/** How many arrivals wait to be accepted. Node takes them from the kernel's queue unasked. */
export const QUEUE_MAX = 128;

/** A call that waits. */
interface Pending {
  resolve(connection: Connection | null): void;
  reject(error: Error): void;
}

/** A listener over a listening server, which it takes over. */
export class NodeListener implements Listener {
  readonly port: number;
  readonly #server: Server;
  readonly #queue: (Connection | Error)[] = [];
  #waiter: Pending | undefined;
  #closed = false;

  /** @param server The server, which makes its sockets paused. */
  constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", (socket) => this.#arrive(socket));
    server.on("error", (error) => this.#offer(error));
  }

  accept(): Promise<Connection | null> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return resolve(null);
      this.#waiter = { resolve, reject };
      const next = this.#queue.shift();
      if (next !== undefined) this.#offer(next);
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#server.close();
    for (const arrival of this.#queue.splice(0)) discard(arrival);
    this.#waiter?.resolve(null);
    this.#waiter = undefined;
  }

  #arrive(socket: Socket): void {
    const { remoteAddress, remotePort } = socket;
    // A peer that has gone by now has no address.
    if (remoteAddress === undefined || remotePort === undefined) {
      socket.on("error", () => {}).destroy();
      return;
    }
    socket.setNoDelay(true);
    socket.setKeepAlive(true);
    this.#offer(new NodeConnection(socket, { ip: remoteAddress, port: remotePort }));
  }

  #offer(arrival: Connection | Error): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (this.#closed) discard(arrival);
    else if (waiter === undefined) {
      if (this.#queue.length < QUEUE_MAX) this.#queue.push(arrival);
      else discard(arrival);
    } else if (arrival instanceof Error) waiter.reject(arrival);
    else waiter.resolve(arrival);
  }
}

function discard(arrival: Connection | Error): void {
  if (!(arrival instanceof Error)) arrival.close();
}
