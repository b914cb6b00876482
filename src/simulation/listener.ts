/**
 * A port bound by a simulated process.
 *
 * @module
 */

import type { Connection, Listener } from "../mesh/runtime.ts";
import type { SimulatedConnection } from "./connection.ts";
import { networkError } from "./network_error.ts";
import type { SimulatedProcess } from "./process.ts";

/** Connections that wait to be accepted; one more is not answered until there is room. */
const BACKLOG_MAX = 128;

/** An accept that waits. */
interface Accepting {
  readonly resolve: (connection: Connection | null) => void;
  readonly reject: (error: Error) => void;
}

/** A port bound by a simulated process. */
export class SimulatedListener implements Listener {
  readonly port: number;
  /** The address that it is bound to; every one where it is undefined. */
  readonly hostname: string | undefined;
  /** The process that bound it. */
  readonly owner: SimulatedProcess;
  readonly #backlog: SimulatedConnection[] = [];
  #accepting: Accepting | null = null;
  #isClosed = false;

  /** Binds a port: {@linkcode SimulatedProcess.listen} does this. */
  constructor(owner: SimulatedProcess, options: { port: number; hostname?: string }) {
    this.owner = owner;
    this.port = options.port;
    this.hostname = options.hostname;
  }

  /** Whether it takes one more connection to `ip`. */
  takes(ip: string, port: number): boolean {
    return port === this.port && (this.hostname === undefined || this.hostname === ip);
  }

  /** Whether it has no room for one more connection. */
  get isFull(): boolean {
    return this.#backlog.length >= BACKLOG_MAX;
  }

  /** Queues a connection to be accepted. */
  enqueue(connection: SimulatedConnection): void {
    this.#backlog.push(connection);
    this.#serve();
  }

  accept(): Promise<Connection | null> {
    if (this.#accepting !== null) {
      this.owner.host.network.blame(`${this.owner.host.name}: a second accept while one waits`);
    }
    if (this.#isClosed) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#accepting = { resolve, reject };
      this.#serve();
    });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const accepting = this.#accepting;
    this.#accepting = null;
    accepting?.resolve(null);
    this.owner.forget(this);
    for (const connection of this.#backlog.splice(0)) {
      this.owner.forget(connection);
      connection.die("reset");
    }
  }

  /** Ends with its owner's death: a pending accept is never answered. */
  die(): void {
    this.#isClosed = true;
    this.#accepting = null;
  }

  #serve(): void {
    const accepting = this.#accepting;
    const first = this.#backlog[0];
    if (accepting === null || first === undefined) return;
    this.#accepting = null;
    const { host } = this.owner;
    if (host.acceptFailures > 0) {
      host.acceptFailures--;
      accepting.reject(networkError("EMFILE", "too many open files"));
      return;
    }
    this.#backlog.shift();
    host.network.observer.accepted?.(first);
    accepting.resolve(first);
  }
}
