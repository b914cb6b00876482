/**
 * The HTTP API over a store in memory, without a socket.
 *
 * @module
 */

import type { MeshStats } from "../../mesh/stats.ts";
import type { OutgoingMessage } from "../../protocol/messages.ts";
import { Prng } from "../../simulation/prng.ts";
import { VirtualClock } from "../../simulation/virtual_clock.ts";
import { AckService } from "../ack_service.ts";
import type { PopWaitSettings } from "../backoff.ts";
import { DelayedWakes } from "../delayed_wakes.ts";
import { createHandler } from "../http/app.ts";
import { BodyReader } from "../http/body_reader.ts";
import type { HttpHandler } from "../http_seam.ts";
import { Metrics } from "../metrics/metrics.ts";
import { OpeningPops } from "../opening_pops.ts";
import { PopService } from "../pop_service.ts";
import { PushService } from "../push_service.ts";
import { QueueDeleter } from "../queue_deleter.ts";
import { SealingPushes } from "../sealing_pushes.ts";
import { SealingTransactions } from "../sealing_transactions.ts";
import { SchemaGate } from "../schema_gate.ts";
import type { Cipher } from "../spool/cipher.ts";
import type { SpoolSettings } from "../spooler.ts";
import { TransactionService } from "../transaction_service.ts";
import { Upkeep } from "../upkeep.ts";
import { Waker } from "../waker.ts";
import { Wakes } from "../wakes.ts";
import { FakeStore } from "./fake_store.ts";
import { MemoryLogger } from "./memory_logger.ts";

const NO_POLLS: PopWaitSettings = { initialMs: 1e8, threshold: 0, multiplier: 1, maxMs: 1e8 };

/** A reply, read. */
export interface Reply {
  /** The status. */
  readonly status: number;
  /** The body as text. */
  readonly text: string;
  /** The body as `JSON.parse` reads it; undefined where there is none. */
  // deno-lint-ignore no-explicit-any
  readonly body: any;
}

/** What comes with a request beside its path. */
export interface CallOptions {
  /** GET where it is left out, or POST where there is a body. */
  readonly method?: string;
  /** Sent as it is where it is text or bytes, else as JSON. */
  readonly body?: unknown;
  /** Ends the request as a client does that leaves. */
  readonly signal?: AbortSignal;
  /** What becomes of the reply; delivered where it is left out. */
  readonly completed?: Promise<void>;
  /** Headers. */
  readonly headers?: Record<string, string>;
}

/** How an {@linkcode HttpBench} differs. */
export interface HttpBenchOptions {
  /** The greatest body, in bytes. */
  readonly bytesMax?: number;
  /** Whether requests name their tenant. */
  readonly tenancy?: boolean;
  /** Where to spool to; nowhere, where it is left out. */
  readonly spool?: SpoolSettings;
  /** Seals what is encrypted. */
  readonly cipher?: Cipher;
}

/** The routes, and all that they stand on. */
export class HttpBench {
  readonly clock: VirtualClock = new VirtualClock();
  readonly store: FakeStore = new FakeStore({ clock: this.clock });
  readonly logger: MemoryLogger = new MemoryLogger();
  readonly frames: OutgoingMessage[] = [];
  readonly waker: Waker = new Waker({ clock: this.clock, popWait: NO_POLLS });
  readonly delayedWakes: DelayedWakes;
  readonly gate: SchemaGate;
  readonly upkeep: Upkeep;
  readonly bodies: BodyReader;
  readonly handler: HttpHandler;
  /** What the mesh says of itself. */
  meshStats: MeshStats = { enabled: false, reason: "no_peers" };

  constructor({ bytesMax = 100_000, tenancy = false, spool, cipher }: HttpBenchOptions = {}) {
    const { clock, store, logger, waker } = this;
    const { random } = new Prng(1);
    const broadcast = (message: OutgoingMessage) => {
      this.frames.push(message);
    };
    const wakes = new Wakes({ waker, broadcast });
    this.delayedWakes = new DelayedWakes({ clock, wakes });
    this.gate = new SchemaGate({ store, clock, random, logger });
    this.bodies = new BodyReader({ clock, bytesMax });
    this.upkeep = new Upkeep({
      store,
      spool,
      cipher,
      cacheRefreshMs: undefined,
      waker,
      wakes,
      broadcast,
      clock,
      random,
      logger,
    });
    const { configs, payloads, spooler, flags } = this.upkeep;
    const pops = new PopService({
      store: new OpeningPops({ store: this.upkeep.store, configs, payloads, logger }),
      queues: store,
      clock,
      waker,
      wakes,
      isPaused: () => flags.modes.popMaintenance,
      logger,
    });
    const metrics = new Metrics({
      clock,
      sources: {
        meshStats: () => this.meshStats,
        modes: () => flags.modes,
        parkedCount: () => waker.parkedCount,
        popCounts: () => pops.counts,
        hotList: () => ({ rings: 0, bytes: 0, refused: 0, hintsDropped: 0 }),
      },
    });
    const acks = new AckService({ store, wakes, delayedWakes: this.delayedWakes });
    this.handler = createHandler({
      store,
      gate: this.gate,
      upkeep: this.upkeep,
      pushes: new PushService({
        store: new SealingPushes({ store: this.upkeep.store, configs, payloads }),
        spooler,
        wakes,
        random,
      }),
      pops,
      acks,
      transactions: new TransactionService({
        store: new SealingTransactions({ store: this.upkeep.store, configs, payloads }),
        spooler,
        wakes,
        acks,
        random,
      }),
      deleter: new QueueDeleter({
        store,
        onDeleted: (tenant, queue) => {
          this.upkeep.noteChanged(tenant, queue);
          broadcast({ type: "queue_config_delete", queue, tenant });
        },
        clock,
        logger,
      }),
      wakes,
      waker,
      tenancy,
      meshStats: () => this.meshStats,
      broadcast,
      modes: () => flags.modes,
      metrics,
      bodies: this.bodies,
      replyBytesMax: bytesMax,
      logger,
    });
  }

  /** A bench whose schema is there. */
  static async started(options: HttpBenchOptions = {}): Promise<HttpBench> {
    const bench = new HttpBench(options);
    await bench.upkeep.open();
    await bench.gate.start();
    // Before that is known nothing drains.
    if (options.spool !== undefined) await bench.upkeep.flags.refresh();
    return bench;
  }

  /** Asks and reads the reply. */
  async call(path: string, options: CallOptions = {}): Promise<Reply> {
    const { completed = Promise.resolve() } = options;
    const response = await this.handler(toRequest(path, options), { completed });
    return await readReply(response);
  }
}

/** Reads a reply. */
export async function readReply(response: Response): Promise<Reply> {
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return {
    status: response.status,
    text,
    body: isJson && text !== "" ? JSON.parse(text) : undefined,
  };
}

/** The request that `options` describe. */
export function toRequest(path: string, options: CallOptions): Request {
  const { body, signal, headers = {} } = options;
  return new Request(`http://replica${path}`, {
    method: options.method ?? (body === undefined ? "GET" : "POST"),
    headers,
    ...(body === undefined ? {} : { body: toBody(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
}

function toBody(body: unknown): BodyInit {
  if (typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream) {
    return body as BodyInit;
  }
  return JSON.stringify(body);
}
