/**
 * Replicas with spools, in virtual time.
 *
 * @module
 */

import assert from "node:assert/strict";
import { MESH_DEFAULTS } from "../../mesh/config.ts";
import { SimulatedNetwork } from "../../simulation/network.ts";
import { Prng } from "../../simulation/prng.ts";
import { settle } from "../../simulation/virtual_clock.ts";
import type { PopWaitSettings } from "../backoff.ts";
import { Replica } from "../replica.ts";
import type { Cipher } from "../spool/cipher.ts";
import { fakeCipher } from "../spool/testing/fake_cipher.ts";
import { SimulatedFileSystem } from "../spool/testing/simulated_file_system.ts";
import type { SpoolSettings } from "../spooler.ts";
import { FakeStore } from "./fake_store.ts";
import type { CallOptions, Reply } from "./http_bench.ts";
import { MemoryHttp } from "./memory_http.ts";
import { MemoryLogger } from "./memory_logger.ts";

/** So slow that only a wake explains a reply within a test's deadline. */
const SLOW: PopWaitSettings = { initialMs: 1e6, threshold: 3, multiplier: 1, maxMs: 1e6 };

const EPOCH_MS = 1_700_000_000_000;

/** How a replica of a {@linkcode SpooledCluster} differs. */
export interface SpooledReplicaOptions {
  /** The replicas that it knows; none by default. */
  readonly peers?: readonly string[];
  /** Its key; without one where it is left out. */
  readonly cipher?: Cipher;
  /** How often it reconciles, in milliseconds; hardly ever by default. */
  readonly cacheRefreshMs?: number;
  /** Changes to its spool; null for none at all. */
  readonly spool?: Partial<SpoolSettings> | null;
}

/** One replica, and a client of it. */
export interface SpooledReplica {
  readonly replica: Replica;
  readonly http: MemoryHttp;
  readonly files: SimulatedFileSystem;
  /** Asks, and lets time pass until it is answered. */
  call(path: string, options?: CallOptions): Promise<Reply>;
  /** Pushes a message to each of these partitions of `q`, and resolves to the statuses. */
  push(...partitions: string[]): Promise<string[]>;
}

/** A key. */
export const KEY: Cipher = fakeCipher(7);

/** Replicas on simulated hosts, each with a disk of its own, over one store. */
export class SpooledCluster<S extends FakeStore = FakeStore> implements AsyncDisposable {
  readonly network = new SimulatedNetwork();
  readonly logger = new MemoryLogger();
  readonly store: S;
  readonly #replicas = new Set<Replica>();
  #messages = 0;

  constructor(makeStore: (options: ConstructorParameters<typeof FakeStore>[0]) => S) {
    this.store = makeStore({ clock: this.network.clock, latencyMs: () => 1 });
  }

  /** Puts a replica together, and does not start it. */
  make(name: string, options: SpooledReplicaOptions = {}): SpooledReplica {
    const { peers = [], cipher, cacheRefreshMs = 1e8, spool } = options;
    const { clock } = this.network;
    const http = new MemoryHttp();
    const files = new SimulatedFileSystem({ prng: new Prng(1) });
    const settings: SpoolSettings = {
      directory: `/data/queen-spool/${name}`,
      bytesMax: 1_000_000,
      fileSystem: files,
      acquireLock: () => Promise.resolve({ release: () => Promise.resolve() }),
      wallClock: () => EPOCH_MS + clock.now(),
      ...spool,
    };
    const replica = new Replica({
      runtime: this.network.host(name).runtime,
      listenHttp: http.listen,
      store: this.store,
      config: {
        port: 6632,
        maxBodyBytes: 100_000,
        popWait: SLOW,
        cacheRefreshMs,
        mesh: {
          ...MESH_DEFAULTS,
          serverId: name,
          peers: peers.map((host) => ({ host, port: 6633 })),
        },
      },
      ...(spool === null ? {} : { spool: settings }),
      ...(cipher === undefined ? {} : { cipher }),
      logger: this.logger,
    });
    this.#replicas.add(replica);
    const call = (path: string, options: CallOptions = {}) => this.run(http.call(path, options));
    const push = async (...partitions: string[]) => {
      const items = partitions.map((partition) => ({
        queue: "q",
        partition,
        payload: ++this.#messages,
      }));
      const { status, body } = await call("/api/v1/push", { body: { items } });
      assert.equal(status, 201, JSON.stringify(body));
      return body.map((each: { status: string }) => each.status);
    };
    return { replica, http, files, call, push };
  }

  /** A replica that serves. */
  async start(name: string, options: SpooledReplicaOptions = {}): Promise<SpooledReplica> {
    const made = this.make(name, options);
    await this.run(made.replica.start());
    return made;
  }

  /** Two replicas that know each other. */
  async pair(options: SpooledReplicaOptions = {}): Promise<[SpooledReplica, SpooledReplica]> {
    const a = await this.start("a", { ...options, peers: ["b"] });
    const b = await this.start("b", { ...options, peers: ["a"] });
    await this.pass(2000);
    return [a, b];
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    await this.network.clock.advance(ms);
  }

  /** Lets time pass until `promise` settles. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    await settle();
    while (!isSettled) await this.network.clock.step();
    return await promise;
  }

  /** The payloads of `q` as they are stored, partition after partition. */
  get stored(): string[] {
    return this.store.stored("q").map(({ payload }) => payload);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run(Promise.all([...this.#replicas].map((replica) => replica.close())));
    assert.equal(this.network.clock.pending, 0, "timers");
    assert.deepEqual(this.network.breaches, []);
  }
}

/** A cluster over the plain store. */
export function spooledCluster(): SpooledCluster {
  return new SpooledCluster((options) => new FakeStore(options));
}

/** Flips a flag by way of a replica. */
export async function flip(
  { call }: SpooledReplica,
  enabled: boolean,
  path: "" | "/pop" = "",
): Promise<Reply> {
  return await call(`/api/v1/system/maintenance${path}`, { body: { enabled } });
}
