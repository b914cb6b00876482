/**
 * The HTTP API over PostgreSQL, without a socket.
 *
 * @module
 */

import { setTimeout as delay } from "node:timers/promises";
import { MESH_DEFAULTS } from "../../mesh/config.ts";
import { denoRuntime } from "../../runtime/deno.ts";
import type { TestStore } from "../../testing/test_store.ts";
import type { ReplicaConfig } from "../config.ts";
import { createApp } from "../http/app.ts";
import type { HttpParts } from "../http/parts.ts";
import { Replica } from "../replica.ts";
import { TENANT_HEADER } from "../tenancy.ts";
import type { CallOptions, Reply } from "./http_bench.ts";
import { MemoryHttp } from "./memory_http.ts";
import { MemoryLogger } from "./memory_logger.ts";

/** Nobody's poll: only a wake explains a reply. */
const NO_POLLS = { initialMs: 600_000, threshold: 0, multiplier: 1, maxMs: 600_000 };

/** How long something that is waited for may take, in milliseconds. */
const DEADLINE_MS = 20_000;

/** A tenant as clients name it; undefined names none. */
export type Tenant = string | undefined;

/** A request, as somebody sends it. */
export interface ApiRequest extends CallOptions {
  /** Where to. */
  readonly path: string;
}

/** How the replica differs. */
export interface ApiOptions {
  /** Whether requests name their tenant. */
  readonly tenancy?: boolean;
  /** What else of its configuration is set. */
  readonly config?: Partial<ReplicaConfig>;
}

/** One replica on a store in PostgreSQL, and a client of it. */
export class Api implements AsyncDisposable {
  readonly logger: MemoryLogger = new MemoryLogger();
  readonly #opened: TestStore;
  readonly #http = new MemoryHttp();
  readonly #replica: Replica;

  private constructor(opened: TestStore, { config = {}, tenancy = false }: ApiOptions) {
    this.#opened = opened;
    this.#replica = new Replica({
      runtime: denoRuntime(),
      listenHttp: this.#http.listen,
      store: opened.store,
      config: {
        port: 0,
        maxBodyBytes: 100_000,
        popWait: NO_POLLS,
        tenancy,
        mesh: { ...MESH_DEFAULTS, serverId: "a" },
        ...config,
      },
      logger: this.logger,
    });
  }

  /** Starts a replica on `opened`, which it closes in the end. */
  static async start(
    opened: TestStore,
    options: ApiOptions = {},
  ): Promise<Api> {
    const api = new Api(opened, options);
    await api.#replica.start();
    return api;
  }

  /** Asks and reads the reply. */
  async ask({ path, ...options }: ApiRequest, tenant: Tenant = undefined): Promise<Reply> {
    const headers = { ...options.headers, ...(tenant && { [TENANT_HEADER]: tenant }) };
    return await this.#http.call(path, { ...options, headers });
  }

  /** Sends `body` as JSON, or gets where there is none. */
  async call(path: string, body?: unknown, tenant: Tenant = undefined): Promise<Reply> {
    return await this.ask({ path, ...(body === undefined ? {} : { body }) }, tenant);
  }

  /** What the statistics say of the pops that wait. */
  async waker(): Promise<Record<string, number>> {
    return (await this.call("/internal/api/shared-state/stats")).body.waker;
  }

  /** Resolves once `count` pops are parked. */
  async untilParked(count: number): Promise<void> {
    const end = performance.now() + DEADLINE_MS;
    while ((await this.waker())["parked"] !== count) {
      if (performance.now() > end) throw new Error(`${count} pops were not parked in time`);
      await delay(5);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#replica.close();
    await this.#opened[Symbol.asyncDispose]();
  }
}

/** Every route that there is, as `METHOD /path/:parameter`. */
export function allRoutes(): string[] {
  // Routes look at their parts only once they are asked.
  const { routes } = createApp({} as HttpParts);
  return routes.filter(({ method }) => method !== "ALL").map(({ method, path }) =>
    `${method} ${path}`
  );
}
