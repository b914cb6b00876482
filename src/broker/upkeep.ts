import type { Clock, Logger, Random } from "../mesh/runtime.ts";
import type { OutgoingMessage } from "../protocol/messages.ts";
import { ConfigCache } from "./config_cache.ts";
import { EncryptedQueues } from "./encrypted_queues.ts";
import { EncryptedQueuesFile } from "./encrypted_queues_file.ts";
import { MaintenanceFlags } from "./maintenance.ts";
import { Payloads } from "./payloads.ts";
import { CACHE_REFRESH_MS, Reconciler } from "./reconcile.ts";
import type { Cipher } from "./spool/cipher.ts";
import { Spooler, type SpoolSettings } from "./spooler.ts";
import type { Store, TenantId } from "./store/store.ts";
import { StoreSink } from "./store_sink.ts";
import type { Waker } from "./waker.ts";
import type { Wakes } from "./wakes.ts";
import { watchStore } from "./watched_store.ts";

/** What an {@linkcode Upkeep} is made of. */
export interface UpkeepOptions {
  /** PostgreSQL. */
  readonly store: Store;
  /** Where to spool to; nowhere, where it is left out. */
  readonly spool: SpoolSettings | undefined;
  /** Seals what is encrypted; nothing can be, where it is left out. */
  readonly cipher: Cipher | undefined;
  /** How often it reconciles, in milliseconds. */
  readonly cacheRefreshMs: number | undefined;
  /** The pops that wait. */
  readonly waker: Waker;
  /** Where to announce what drains. */
  readonly wakes: Wakes;
  /** Tells every peer; never waits. */
  readonly broadcast: (message: OutgoingMessage) => void;
  /** Time. */
  readonly clock: Clock;
  /** For ids and jitter. */
  readonly random: Random;
  /** Where it reports. */
  readonly logger: Logger;
}

/**
 * What keeps a replica in step with PostgreSQL, and going without it: the maintenance flags, the cached
 * configuration, the reconcile, and the disk spool.
 */
export class Upkeep {
  /** PostgreSQL, watched: that it answers again is noticed by whatever is asked of it. */
  readonly store: Store;
  /** The maintenance flags. */
  readonly flags: MaintenanceFlags;
  /** What is known of queues. */
  readonly configs: ConfigCache;
  /** Seals and opens payloads. */
  readonly payloads: Payloads;
  /** The disk spool. */
  readonly spooler: Spooler;
  /** With a key nobody asks for them: all that is spooled is sealed. */
  readonly #encryptedQueues: EncryptedQueues | undefined;
  readonly #queuesFile: EncryptedQueuesFile | undefined;
  readonly #logger: Logger;
  readonly #reconciler: Reconciler;
  #isPostgresAway = false;
  #isFileFailing = false;

  /** Puts it together; it does nothing before {@linkcode Upkeep.open | open}. */
  constructor(options: UpkeepOptions) {
    const { spool: settings, cipher, waker, wakes, broadcast, clock, random, logger } = options;
    const { cacheRefreshMs: intervalMs = CACHE_REFRESH_MS } = options;
    this.store = watchStore(options.store, {
      onAnswer: (call) => this.#onAnswer(call),
      onSilence: () => {
        this.#isPostgresAway = true;
      },
    });
    const { store } = this;
    this.flags = new MaintenanceFlags({
      clock,
      random,
      logger,
      read: () => store.readFlags(),
      write: (name, enabled) => store.writeFlag(name, enabled),
      broadcast,
      onChange: (name, enabled) => {
        if (name === "maintenance") this.spooler.wake();
        else if (!enabled) waker.wakeAll();
      },
    });
    this.configs = new ConfigCache({
      load: ({ tenant, queue }) => store.queueConfig(tenant, queue),
    });
    this.#logger = logger;
    if (settings !== undefined && cipher === undefined) {
      this.#queuesFile = new EncryptedQueuesFile(settings.fileSystem, settings.directory);
      this.#encryptedQueues = new EncryptedQueues({
        load: (countMax) => store.encryptedQueues(countMax),
        remember: (queues) => this.#tryFile((file) => file.write(queues)),
      });
    }
    const { flags, configs } = this;
    const payloads = this.payloads = new Payloads(cipher);
    this.spooler = new Spooler({
      settings,
      cipher,
      sink: new StoreSink({ store, configs, payloads, wakes }),
      configs,
      encryptedQueues: { isClear: (...key) => this.#encryptedQueues?.isClear(...key) ?? true },
      isMaintenance: () => flags.modes.maintenance,
      // Until PostgreSQL has said that there is no maintenance, nothing may drain.
      isPaused: () => flags.modes.maintenance || !flags.isKnown("maintenance"),
      isPostgresAway: () => this.#isPostgresAway,
      clock,
      random,
      logger,
    });
    this.#reconciler = new Reconciler({
      clock,
      random,
      intervalMs,
      refreshFlags: () => this.#refresh(),
      dropCaches: () => configs.dropAll(),
    });
  }

  /** Whether PostgreSQL answered the last time. */
  get isPostgresHealthy(): boolean {
    return !this.#isPostgresAway;
  }

  /**
   * Opens the spool.
   *
   * @throws {SpoolInUseError} where another process works on it. Other errors are the file system's.
   */
  async open(): Promise<void> {
    await this.spooler.open();
    await this.#tryFile(async (file) => this.#encryptedQueues?.recall(await file.read()));
  }

  /**
   * Reads the flags, and reconciles regularly from then on. Resolves once PostgreSQL has said what they
   * are, or could not.
   */
  async start(): Promise<void> {
    this.#reconciler.start();
    // Why it failed has been reported, and it is tried again.
    await this.#refresh().catch(() => {});
  }

  /** A queue was configured here. */
  noteConfigured(tenant: TenantId, queue: string): void {
    this.noteChanged(tenant, queue);
    // Once PostgreSQL is away it could not be asked whether the queue's messages may be spooled.
    this.configs.get({ tenant, queue }).catch(() => {});
  }

  /** A queue was deleted here, or it changed elsewhere: that of every tenant where none is given. */
  noteChanged(tenant: TenantId | undefined, queue: string): void {
    this.configs.drop(tenant, queue);
    this.#encryptedQueues?.noteChanged(queue);
  }

  /** Stops; resolves once nothing is under way. */
  async close(): Promise<void> {
    await Promise.all([this.#reconciler.close(), this.flags.close()]);
    await this.#encryptedQueues?.settle();
    await this.spooler.close();
  }

  /** It only spares refusals: a disk that fails is reported, and no more. */
  async #tryFile(work: (file: EncryptedQueuesFile) => Promise<void>): Promise<void> {
    if (this.#queuesFile === undefined) return;
    try {
      await work(this.#queuesFile);
      this.#isFileFailing = false;
    } catch (error) {
      if (this.#isFileFailing) return;
      this.#isFileFailing = true;
      this.#logger.warn("Which queues are encrypted cannot be kept beside the spool", { error });
    }
  }

  #onAnswer(call: keyof Store): void {
    if (this.#isPostgresAway) {
      this.#isPostgresAway = false;
      this.spooler.wake();
    }
    this.flags.postgresAnswered();
    // From here on there is something to read.
    if (call === "migrate") this.#refresh().catch(() => {});
  }

  async #refresh(): Promise<void> {
    await Promise.all([this.flags.refresh(), this.#encryptedQueues?.refresh()]);
  }
}
