/**
 * Replicas in virtual time.
 *
 * @module
 */

import assert from "node:assert/strict";
import { MESH_DEFAULTS } from "../../mesh/config.ts";
import { SimulatedNetwork } from "../../simulation/network.ts";
import { settle } from "../../simulation/virtual_clock.ts";
import type { PopWaitSettings } from "../backoff.ts";
import type { ReplicaConfig } from "../config.ts";
import { Replica } from "../replica.ts";
import { FakeStore } from "./fake_store.ts";
import { MemoryHttp } from "./memory_http.ts";
import { MemoryLogger } from "./memory_logger.ts";

/** So slow that only a wake explains a reply soon after. */
const SLOW: PopWaitSettings = { initialMs: 5000, threshold: 3, multiplier: 2, maxMs: 5000 };

/** A replica of a {@linkcode Cluster}. */
export interface ClusterReplica {
  readonly replica: Replica;
  /** Talks to it. */
  readonly http: MemoryHttp;
}

/** Replicas on simulated hosts, over one store, in virtual time. */
export class Cluster implements AsyncDisposable {
  readonly network = new SimulatedNetwork();
  readonly store = new FakeStore({ clock: this.network.clock, latencyMs: () => 1 });
  readonly logger = new MemoryLogger();
  readonly #replicas: Replica[] = [];

  /** Makes a replica on the host `name`, which has peers of these names. */
  make(
    name: string,
    peers: readonly string[],
    popWait: PopWaitSettings = SLOW,
    changes: Partial<ReplicaConfig> = {},
  ): ClusterReplica {
    const http = new MemoryHttp();
    const replica = new Replica({
      runtime: this.network.host(name).runtime,
      listenHttp: http.listen,
      store: this.store,
      config: {
        port: 6632,
        maxBodyBytes: 100_000,
        popWait,
        mesh: {
          ...MESH_DEFAULTS,
          serverId: name,
          peers: peers.map((host) => ({ host, port: 6633 })),
        },
        ...changes,
      },
      logger: this.logger,
    });
    this.#replicas.push(replica);
    return { replica, http };
  }

  /** Two replicas that know each other. */
  async pair(popWait?: PopWaitSettings): Promise<[MemoryHttp, MemoryHttp]> {
    const a = this.make("a", ["b"], popWait);
    const b = this.make("b", ["a"], popWait);
    await this.run(Promise.all([a.replica.start(), b.replica.start()]));
    await this.pass(1000);
    return [a.http, b.http];
  }

  /** Lets `ms` milliseconds of virtual time pass. */
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run(Promise.all(this.#replicas.map((replica) => replica.close())));
    assert.equal(this.network.clock.pending, 0, "timers");
    assert.deepEqual(this.network.breaches, []);
  }
}
