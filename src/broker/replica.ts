import { Mesh, type MeshOptions } from "../mesh/mesh.ts";
import type { Logger, Runtime } from "../mesh/runtime.ts";
import type { Message, OutgoingMessage } from "../protocol/messages.ts";
import { AckService } from "./ack_service.ts";
import { BatchedAcks } from "./batching/batched_acks.ts";
import { BatchedPops } from "./batching/batched_pops.ts";
import { BatchedPushes } from "./batching/batched_pushes.ts";
import type { ReplicaConfig } from "./config.ts";
import { DelayedWakes } from "./delayed_wakes.ts";
import { createHandler } from "./http/app.ts";
import { BodyReader } from "./http/body_reader.ts";
import { HOT_LIST_DEFAULTS } from "./hot_list/config.ts";
import { DirtyHints } from "./hot_list/dirty_hints.ts";
import { HotList } from "./hot_list/hot_list.ts";
import { HotPops } from "./hot_list/hot_pops.ts";
import type { HttpHandler, HttpListener, ListenHttp } from "./http_seam.ts";
import { meterPops } from "./metrics/metered_pops.ts";
import { Metrics } from "./metrics/metrics.ts";
import { OpeningPops } from "./opening_pops.ts";
import { PopService } from "./pop_service.ts";
import { PushService } from "./push_service.ts";
import { QueueDeleter } from "./queue_deleter.ts";
import { RETENTION_INTERVAL_MS, RetentionSweeper } from "./retention_sweeper.ts";
import { SealingPushes } from "./sealing_pushes.ts";
import { SealingTransactions } from "./sealing_transactions.ts";
import { SchemaGate } from "./schema_gate.ts";
import type { Cipher } from "./spool/cipher.ts";
import type { SpoolSettings } from "./spooler.ts";
import type { Store, TenantId } from "./store/store.ts";
import { tenantOfFrame } from "./tenancy.ts";
import { TransactionService } from "./transaction_service.ts";
import { Upkeep } from "./upkeep.ts";
import { Waker } from "./waker.ts";
import { Wakes } from "./wakes.ts";

/** What a {@linkcode Replica} is made of. */
export interface ReplicaOptions {
  /** Connections, time and randomness. */
  readonly runtime: Runtime;
  /** Serves HTTP. */
  readonly listenHttp: ListenHttp;
  /** The queues. The replica closes it. */
  readonly store: Store;
  /** How the replica is set up. */
  readonly config: ReplicaConfig;
  /**
   * Where it spools what PostgreSQL cannot take. Where it is left out, such pushes are refused.
   */
  readonly spool?: SpoolSettings;
  /** Seals what is encrypted and all that is spooled. Where it is left out, encryption is refused. */
  readonly cipher?: Cipher;
  /** Where the replica reports what an operator would want to know. */
  readonly logger: Logger;
  /** Puts its node of the mesh together; a plain {@linkcode Mesh} where it is left out. */
  readonly createMesh?: (options: MeshOptions) => Mesh;
}

/**
 * One broker: the HTTP API over a store, joined to its peers by the mesh. A push on one replica wakes
 * the pops that wait on the others (WAK-1).
 *
 * @example A replica set up by the environment, under Deno
 * ```ts ignore
 * import {
 *   createCipher,
 *   databaseFromEnv,
 *   listenHttp,
 *   nodeFileSystem,
 *   PostgresStore,
 *   Replica,
 *   replicaConfigFromEnv,
 *   socketLock,
 * } from "@queen/mesh/broker";
 * import { denoRuntime } from "@queen/mesh/deno";
 *
 * const runtime = denoRuntime();
 * const { clock, random } = runtime;
 * const env = Deno.env.toObject();
 * const { url = "postgres://localhost", ...database } = databaseFromEnv(env);
 * const sources = { hostName: Deno.hostname(), random, warn: console.warn };
 * const config = replicaConfigFromEnv(env, sources);
 * const { encryptionKeyHex: key } = config;
 * const replica = new Replica({
 *   runtime,
 *   listenHttp,
 *   store: new PostgresStore({ ...database, url, clock }),
 *   config,
 *   spool: {
 *     ...config.spool,
 *     fileSystem: nodeFileSystem,
 *     acquireLock: socketLock(runtime),
 *     wallClock: Date.now,
 *   },
 *   ...(key === undefined ? {} : { cipher: await createCipher(key) }),
 *   logger: console,
 * });
 * await replica.start();
 * ```
 */
export class Replica implements AsyncDisposable {
  readonly #options: ReplicaOptions;
  readonly #tenancy: boolean;
  readonly #waker: Waker;
  readonly #mesh: Mesh;
  readonly #hotList: HotList;
  readonly #dirtyHints: DirtyHints;
  readonly #delayedWakes: DelayedWakes;
  readonly #gate: SchemaGate;
  readonly #upkeep: Upkeep;
  readonly #sweeper: RetentionSweeper;
  readonly #pops: PopService;
  readonly #bodies: BodyReader;
  readonly #handler: HttpHandler;
  #listener: HttpListener | undefined;
  #starting: Promise<void> | undefined;
  #releasing: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /** Puts the replica together; it does nothing before {@linkcode Replica.start | start}. */
  constructor(options: ReplicaOptions) {
    const { runtime, spool, cipher, config, logger } = options;
    const { clock, random } = runtime;
    this.#options = options;
    this.#tenancy = config.tenancy ?? false;
    this.#waker = new Waker({ clock, popWait: config.popWait });
    const { createMesh = (made: MeshOptions) => new Mesh(made) } = options;
    this.#mesh = createMesh({
      runtime,
      config: config.mesh,
      onMessage: (message) => this.#apply(message),
      logger,
    });
    const broadcast = (message: OutgoingMessage) => this.#mesh.broadcast(message);
    const hotListSettings = config.hotList ?? HOT_LIST_DEFAULTS;
    this.#hotList = new HotList({
      clock,
      random,
      logger,
      settings: hotListSettings,
      loadCandidates: ({ tenant, queue, group }, countMax) =>
        options.store.loadCandidates(tenant, { queue, group }, countMax),
    });
    this.#dirtyHints = new DirtyHints({ clock, broadcast });
    // Where nobody hears them, they need not gather.
    const areHintsHeard = hotListSettings.enabled && config.mesh.enabled &&
      config.mesh.peers.length > 0;
    const wakes = new Wakes({
      waker: this.#waker,
      broadcast,
      hotList: this.#hotList,
      ...(areHintsHeard ? { dirtyHints: this.#dirtyHints } : {}),
    });
    this.#delayedWakes = new DelayedWakes({ clock, wakes });
    this.#upkeep = new Upkeep({
      store: options.store,
      spool,
      cipher,
      cacheRefreshMs: config.cacheRefreshMs,
      waker: this.#waker,
      wakes,
      broadcast,
      clock,
      random,
      logger,
    });
    const { store, flags, configs, payloads, spooler } = this.#upkeep;
    this.#gate = new SchemaGate({ store, clock, random, logger });
    const metrics = new Metrics({
      clock,
      sources: {
        meshStats: () => this.#mesh.stats(),
        modes: () => flags.modes,
        parkedCount: () => this.#waker.parkedCount,
        popCounts: () => this.#pops.counts,
        hotList: () => ({ ...this.#hotList.stats, hintsDropped: this.#dirtyHints.dropped }),
        pool: () => store.poolStats,
        spool: () => spooler.stats,
      },
    });
    this.#pops = new PopService({
      store: new OpeningPops({
        store: meterPops(
          new HotPops({ store: new BatchedPops({ store, clock }), hotList: this.#hotList }),
          metrics,
        ),
        configs,
        payloads,
        logger,
      }),
      queues: store,
      clock,
      waker: this.#waker,
      wakes,
      startWake: () => metrics.startWake(),
      isPaused: () => flags.modes.popMaintenance,
      logger,
    });
    this.#bodies = new BodyReader({ clock, bytesMax: config.maxBodyBytes });
    const acks = new AckService({
      store: new BatchedAcks({ store, clock }),
      wakes,
      delayedWakes: this.#delayedWakes,
    });
    this.#sweeper = new RetentionSweeper({
      store,
      clock,
      intervalMs: config.retentionIntervalMs ?? RETENTION_INTERVAL_MS,
      logger,
    });
    this.#handler = createHandler({
      store,
      gate: this.#gate,
      upkeep: this.#upkeep,
      pushes: new PushService({
        store: new SealingPushes({
          store: new BatchedPushes({ store, clock }),
          configs,
          payloads,
        }),
        spooler,
        wakes,
        random,
      }),
      pops: this.#pops,
      acks,
      transactions: new TransactionService({
        store: new SealingTransactions({ store, configs, payloads }),
        spooler,
        wakes,
        acks,
        random,
      }),
      deleter: new QueueDeleter({
        store,
        onDeleted: (tenant, queue) => {
          this.#forget(tenant, queue);
          broadcast({ type: "queue_config_delete", queue, tenant });
        },
        clock,
        logger,
      }),
      wakes,
      waker: this.#waker,
      tenancy: this.#tenancy,
      meshStats: () => this.#mesh.stats(),
      broadcast,
      modes: () => flags.modes,
      metrics,
      bodies: this.#bodies,
      replyBytesMax: config.maxBodyBytes,
      defaultSubscriptionMode: config.defaultSubscriptionMode ?? "new",
      logger,
    });
  }

  /** The port of the HTTP API, or undefined while none is bound. */
  get port(): number | undefined {
    return this.#listener?.port;
  }

  /** The port of the mesh, or undefined while none is bound. */
  get meshPort(): number | undefined {
    return this.#mesh.boundPort;
  }

  /**
   * Binds the ports, joins the mesh and prepares the schema. PostgreSQL being away, or a mesh port
   * that cannot be bound, is no failure: the replica serves and goes on trying.
   *
   * Rejects where the HTTP port cannot be bound, the schema is refused, or the spool cannot be opened
   * or is another process's; then nothing is left.
   */
  start(): Promise<void> {
    if (this.#closing !== undefined) throw new Error("a closed replica cannot be started again");
    return this.#starting ??= this.#start();
  }

  /**
   * Takes no more requests, answers the pops that wait, and closes the mesh, the HTTP port and the
   * store. Resolves when nothing is left. Closing twice is harmless.
   */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** The same as {@linkcode Replica.close | close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #start(): Promise<void> {
    const { listenHttp, config, logger } = this.#options;
    const { port, hostname } = config;
    try {
      await this.#upkeep.open();
      this.#listener = await listenHttp(this.#handler, {
        port,
        ...(hostname === undefined ? {} : { hostname }),
        onError: (error) => logger.error("Serving HTTP failed", { error }),
      });
      await this.#mesh.start();
      await this.#gate.start();
      await this.#upkeep.start();
      this.#sweeper.start();
    } catch (error) {
      await this.#release();
      throw error;
    }
    logger.info("The replica serves", {
      serverId: config.mesh.serverId,
      port: this.port,
      meshPort: this.meshPort,
    });
  }

  async #close(): Promise<void> {
    // A start that fails has released everything by itself, and has told its caller.
    await this.#starting?.catch(() => {});
    await this.#release();
  }

  #release(): Promise<void> {
    return this.#releasing ??= this.#releaseAll();
  }

  async #releaseAll(): Promise<void> {
    this.#waker.close();
    this.#bodies.close();
    await this.#listener?.close();
    this.#listener = undefined;
    await this.#pops.settle();
    this.#delayedWakes.close();
    this.#dirtyHints.close();
    await Promise.all([
      this.#mesh.close(),
      this.#gate.close(),
      this.#hotList.close(),
      this.#upkeep.close(),
      this.#sweeper.close(),
    ]);
    await this.#options.store.close();
  }

  /** Forgets a queue that was deleted; that of every tenant where none is given. */
  #forget(tenant: TenantId | undefined, queue: string): void {
    this.#upkeep.noteChanged(tenant, queue);
    this.#hotList.dropQueue(tenant, queue);
  }

  /** Applies a hint of a peer, which is never sent on (TOP-6). */
  #apply(message: Message): void {
    switch (message.type) {
      case "message_available":
        for (const hint of message.items) {
          const tenant = tenantOfFrame(hint.tenant, { tenancy: this.#tenancy });
          if (tenant === null) continue;
          const { queue, partition } = hint;
          // Whoever is woken finds it marked.
          this.#hotList.mark({ tenant, queue, partition });
          this.#waker.wake({ tenant, queue, partition });
        }
        return;
      case "hotlist_dirty":
        for (const hint of message.items) {
          const tenant = tenantOfFrame(hint.tenant, { tenancy: this.#tenancy });
          if (tenant !== null) this.#hotList.mark({ ...hint, tenant });
        }
        return;
      case "queue_config_set":
      case "queue_config_delete": {
        const tenant = tenantOfFrame(message.tenant, { tenancy: this.#tenancy });
        if (tenant === null) return;
        if (message.type === "queue_config_delete") {
          this.#forget(tenant, message.queue);
        } else {
          this.#upkeep.noteChanged(tenant, message.queue);
          this.#waker.wakeDiscoveries(tenant);
        }
        return;
      }
      case "maintenance_mode":
      case "pop_maintenance_mode":
        this.#upkeep.flags.hear(message);
        return;
    }
  }
}
