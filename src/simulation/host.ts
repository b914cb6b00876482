/**
 * A simulated machine: addresses, ports, and the processes that come and go on it.
 *
 * @module
 */

import type { ListenOptions, Runtime } from "../mesh/runtime.ts";
import type { SimulatedConnection } from "./connection.ts";
import type { SimulatedListener } from "./listener.ts";
import type { SimulatedNetwork } from "./network.ts";
import { networkError } from "./network_error.ts";
import { type Death, SimulatedProcess } from "./process.ts";

/** The first of the ports that the system chooses. */
const EPHEMERAL_PORT_MIN = 32_768;

/** A simulated machine. */
export class SimulatedHost {
  /** The network that it belongs to. */
  readonly network: SimulatedNetwork;
  /** Its name, which resolves to its addresses. */
  readonly name: string;
  /** Its addresses. */
  readonly addresses: readonly string[];
  /** Whether it answers at all. */
  isUp = true;
  /** How many of the next accepts fail. */
  acceptFailures = 0;
  /** Why no port can be bound now, as an error code such as `EADDRINUSE`; else null. */
  bindFailureCode: string | null = null;
  /** Ends that went down with the host and of which it knows nothing any more. */
  readonly vanished = new Set<SimulatedConnection>();
  readonly #processes = new Set<SimulatedProcess>();
  readonly #waiting: SimulatedConnection[] = [];
  #process: SimulatedProcess | null = null;
  #portNext = EPHEMERAL_PORT_MIN;

  /** Makes a host: {@linkcode SimulatedNetwork.host} does this. */
  constructor(network: SimulatedNetwork, name: string, addresses: readonly string[]) {
    this.network = network;
    this.name = name;
    this.addresses = addresses;
  }

  /** The process that was started last; one is started where there was none. */
  get process(): SimulatedProcess {
    return this.#process ?? this.start();
  }

  /** The runtime of {@linkcode SimulatedHost.process}. */
  get runtime(): Runtime {
    return this.process.runtime;
  }

  /** Starts a process, beside those that run here, and switches the host on if it was off. */
  start(): SimulatedProcess {
    this.isUp = true;
    for (const connection of this.vanished) connection.wake();
    this.vanished.clear();
    for (const connection of this.#waiting.splice(0)) this.receiveOpen(connection);
    this.#process = new SimulatedProcess(this);
    this.#processes.add(this.#process);
    return this.#process;
  }

  /** Kills every process that runs here. */
  kill(death: Death = "reset"): void {
    for (const process of this.#processes) process.kill(death);
    this.#processes.clear();
    this.#process = null;
    if (death === "vanish") this.isUp = false;
  }

  /** Grants or refuses a connection to this host, or leaves the question unanswered. */
  receiveOpen(connection: SimulatedConnection): void {
    if (!this.isUp) {
      this.#waiting.push(connection);
      return;
    }
    // The other end has given up while this one was off.
    if (connection.peer.state !== "opening") return;
    const { ip, port } = connection.peer.remote;
    const listener = this.#listener(ip, port);
    if (listener === null) return connection.answer(null);
    if (listener.isFull) return;
    connection.answer(listener.owner);
    listener.enqueue(connection);
  }

  /** Why a port cannot be bound, or null where it can. */
  bindFailure({ port, hostname }: ListenOptions): Error | null {
    if (this.bindFailureCode !== null) {
      return networkError(this.bindFailureCode, `cannot bind port ${port}`);
    }
    if (port === 0) return null;
    for (const process of this.#processes) {
      for (const other of process.listeners) {
        const isSame = other.port === port &&
          (other.hostname === undefined || hostname === undefined || other.hostname === hostname);
        if (isSame) return networkError("EADDRINUSE", `port ${port} is taken`);
      }
    }
    return null;
  }

  /** A port that is free. */
  drawPort(): number {
    return this.#portNext++;
  }

  #listener(ip: string, port: number): SimulatedListener | null {
    for (const process of this.#processes) {
      for (const listener of process.listeners) {
        if (listener.takes(ip, port)) return listener;
      }
    }
    return null;
  }
}
