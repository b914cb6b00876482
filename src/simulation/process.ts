/**
 * A simulated process: the runtime of one mesh, from its start to its death.
 *
 * @module
 */

import type {
  Abortable,
  Clock,
  Connection,
  Endpoint,
  Listener,
  ListenOptions,
  Network,
  Runtime,
  Timer,
} from "../mesh/runtime.ts";
import type { SimulatedConnection } from "./connection.ts";
import type { SimulatedHost } from "./host.ts";
import { SimulatedListener } from "./listener.ts";
import { networkError } from "./network_error.ts";

/**
 * How a process dies.
 *
 * - `reset`: its kernel resets its connections, and what was on its way is lost.
 * - `end`: its kernel ends its connections in order, after what it had taken.
 * - `vanish`: its host is gone with it and answers nothing until a process is started there again.
 */
export type Death = "reset" | "end" | "vanish";

/** One process on a simulated host. It is the network and the clock of what runs in it. */
export class SimulatedProcess implements Network {
  /** The host on which it runs. */
  readonly host: SimulatedHost;
  /** What a mesh in this process is handed. */
  readonly runtime: Runtime;
  readonly #timers = new Set<Timer>();
  readonly #connections = new Set<SimulatedConnection>();
  readonly #listeners = new Set<SimulatedListener>();
  #lookUps = 0;
  #isAlive = true;
  #isStalled = false;

  /** Starts a process: {@linkcode SimulatedHost.start} does this. */
  constructor(host: SimulatedHost) {
    this.host = host;
    const clock: Clock = {
      now: () => host.network.clock.now(),
      setTimer: (ms, callback) => this.#setTimer(ms, callback),
    };
    this.runtime = { network: this, clock, random: host.network.prng.fork().random };
  }

  /** Whether it has not been killed. */
  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Whether its reads are stalled. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** How many timers are set. A closed mesh leaves none. */
  get timers(): number {
    return this.#timers.size;
  }

  /** How many connections, attempts, look-ups and listeners are open. A closed mesh leaves none. */
  get sockets(): number {
    return this.#connections.size + this.#listeners.size + this.#lookUps;
  }

  /** The listeners that it has open. */
  get listeners(): ReadonlySet<SimulatedListener> {
    return this.#listeners;
  }

  /** From now on its reads wait, whatever arrives, as if it were too busy to read. */
  stall(): void {
    this.#isStalled = true;
  }

  /** Lets its reads go on. */
  unstall(): void {
    this.#isStalled = false;
    for (const connection of this.#connections) connection.serveReader();
  }

  /** Kills it: no timer of it fires and nothing that it waits for is answered, ever. */
  kill(death: Death): void {
    this.#isAlive = false;
    for (const timer of this.#timers) timer.cancel();
    for (const listener of this.#listeners) listener.die();
    for (const connection of this.#connections) {
      connection.die(death);
      if (death === "vanish") this.host.vanished.add(connection);
    }
    this.#timers.clear();
    this.#listeners.clear();
    this.#connections.clear();
    if (death === "vanish") this.host.isUp = false;
  }

  resolve(host: string, { signal }: Abortable): Promise<readonly string[]> {
    const { network } = this.host;
    network.observer.resolving?.(this, host);
    this.#lookUps++;
    return new Promise<readonly string[]>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const timer = this.#setTimer(network.dnsDelayMs, () => {
        const answer = network.lookUp(host);
        if (answer === "hanging") return;
        signal.removeEventListener("abort", onAbort);
        if (answer !== "failing") return resolve([...answer]);
        network.observer.unresolved?.(this, host);
        reject(networkError("ENOTFOUND", `no such host: ${host}`));
      });
      const onAbort = () => {
        timer.cancel();
        network.observer.unresolved?.(this, host);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
    }).finally(() => {
      this.#lookUps--;
    });
  }

  connect(endpoint: Endpoint, { signal }: Abortable): Promise<Connection> {
    const { network } = this.host;
    network.observer.dialling?.(this, endpoint);
    return new Promise<Connection>((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const connection = network.dial(this, endpoint);
      this.#connections.add(connection);
      const onAbort = () => connection.close();
      signal.addEventListener("abort", onAbort, { once: true });
      connection.open((error) => {
        signal.removeEventListener("abort", onAbort);
        if (error !== null) {
          network.observer.unconnected?.(this, endpoint);
          return reject(signal.aborted ? signal.reason : error);
        }
        network.observer.opened?.(connection);
        resolve(connection);
      });
    });
  }

  listen(options: ListenOptions): Promise<Listener> {
    const failure = this.host.bindFailure(options);
    if (failure !== null) return Promise.reject(failure);
    const port = options.port === 0 ? this.host.drawPort() : options.port;
    const listener = new SimulatedListener(this, { ...options, port });
    this.#listeners.add(listener);
    return Promise.resolve(listener);
  }

  /** Counts a connection that this process has accepted, or will accept. */
  adopt(connection: SimulatedConnection): void {
    this.#connections.add(connection);
  }

  /** Counts a connection or a listener no more: its `close` does this. */
  forget(socket: SimulatedConnection | SimulatedListener): void {
    if (socket instanceof SimulatedListener) this.#listeners.delete(socket);
    else this.#connections.delete(socket);
  }

  #setTimer(ms: number, callback: () => void): Timer {
    if (!this.#isAlive) return { cancel() {} };
    const inner = this.host.network.clock.setTimer(ms, () => {
      this.#timers.delete(timer);
      callback();
    });
    const timer: Timer = {
      cancel: () => {
        this.#timers.delete(timer);
        inner.cancel();
      },
    };
    this.#timers.add(timer);
    return timer;
  }
}
