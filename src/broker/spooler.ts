import type { Clock, Logger, Random } from "../mesh/runtime.ts";
import type { ConfigCache } from "./config_cache.ts";
import { adoptSpool } from "./adopt_spool.ts";
import type { EncryptedQueues } from "./encrypted_queues.ts";
import { NO_KEY } from "./payloads.ts";
import { refusalOf } from "./sealing_pushes.ts";
import type { Cipher } from "./spool/cipher.ts";
import { SpoolUnavailableError } from "./spool/errors.ts";
import type { SpoolFileSystem } from "./spool/file_system.ts";
import { findSpoolsBeside } from "./spool/found_spools.ts";
import type { AcquireSpoolLock } from "./spool/lock.ts";
import type { SpoolSink } from "./spool/sink.ts";
import { Spool } from "./spool/spool.ts";
import type { SpoolStats } from "./spool/spool_stats.ts";
import {
  type PushItem,
  type PushOutcome,
  StoreUnavailableError,
  type TenantId,
} from "./store/store.ts";

/** Where a replica spools to. */
export interface SpoolSettings {
  /** The directory. */
  readonly directory: string;
  /** The files' sizes together, in bytes, at most. */
  readonly bytesMax: number;
  /** Whether the spools of other replicas that lie beside it are drained too. */
  readonly adopt?: boolean;
  /** Where the directory lies. */
  readonly fileSystem: SpoolFileSystem;
  /** Keeps other processes out. */
  readonly acquireLock: AcquireSpoolLock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
}

/** What a {@linkcode Spooler} is made of. */
export interface SpoolerOptions {
  /** Where to spool to; nowhere, where it is left out. */
  readonly settings: SpoolSettings | undefined;
  /** Seals every record. */
  readonly cipher: Cipher | undefined;
  /** Where the records drain to. */
  readonly sink: SpoolSink;
  /** Says which queues are encrypted. */
  readonly configs: ConfigCache;
  /** Says which queues were encrypted, for when PostgreSQL cannot be asked. */
  readonly encryptedQueues: Pick<EncryptedQueues, "isClear">;
  /** Whether there is maintenance. */
  readonly isMaintenance: () => boolean;
  /** Whether there is, or may be: then pushes are spooled and nothing drains. */
  readonly isPaused: () => boolean;
  /** Whether PostgreSQL did not answer the last time. */
  readonly isPostgresAway: () => boolean;
  /** Time. */
  readonly clock: Clock;
  /** For ids and jitter. */
  readonly random: Random;
  /** Where trouble is reported. */
  readonly logger: Logger;
}

/** What became of an item that was to be spooled. */
export interface SpoolOutcome extends Omit<PushOutcome, "status"> {
  /** `failed` says why in `error`. */
  readonly status: "buffered" | "failed";
}

const NONE = "this replica has no spool";

/** A replica's disk spool: which pushes go there, and what may. */
export class Spooler {
  readonly #options: SpoolerOptions;
  #spool: Spool | undefined;
  #adoptions: { close(): void; readonly done: Promise<void> }[] = [];

  /** Touches no file before {@linkcode Spooler.open | open}. */
  constructor(options: SpoolerOptions) {
    this.#options = options;
  }

  /**
   * Opens the spool and begins to drain it. Spools of other replicas that lie beside it are reported,
   * and drained where that is wanted.
   *
   * @throws {SpoolInUseError} where another process works on it. Other errors are the file system's.
   */
  async open(): Promise<void> {
    const { settings, logger } = this.#options;
    if (settings === undefined) return;
    this.#spool = await this.#open(settings.directory, settings);
    for (const found of await findSpoolsBeside(settings.fileSystem, settings.directory)) {
      if (settings.adopt) this.#adopt(found.directory, settings);
      else {logger.warn("The spool of another replica lies here; serve --adopt drains it", {
          ...found,
        });}
    }
  }

  /** Whether there is one. */
  get isOpen(): boolean {
    return this.#spool !== undefined;
  }

  /** How it is doing; undefined where there is none. */
  get stats(): SpoolStats | undefined {
    return this.#spool?.stats();
  }

  /** Looks now whether it may drain. */
  wake(): void {
    this.#spool?.wake();
  }

  /**
   * Says which of some items have to go behind what is spooled. While the last batch before them
   * drains it waits for that, at most 1 s.
   *
   * @throws {SpoolUnavailableError} where the spool holds records of the partitions that cannot be
   * opened.
   */
  async mustSpool(
    tenant: TenantId,
    items: readonly PushItem[],
  ): Promise<(item: PushItem) => boolean> {
    const { isMaintenance, isPaused } = this.#options;
    const spool = this.#spool;
    if (spool === undefined) return isMaintenance;
    const partitions = items.map(({ queue, partition }) => ({ tenant, queue, partition }));
    if (await spool.admit(partitions) === "store") return () => false;
    if (isPaused()) return () => true;
    return ({ queue, partition }) => spool.holds({ tenant, queue, partition });
  }

  /**
   * Spools items, in their order and behind all that were given before. Resolves once they outlast a
   * loss of power.
   *
   * @throws {SpoolUnavailableError} where the spool does not take them. None of them counts then.
   * @throws {StoreUnavailableError} where PostgreSQL would have to say whether they may be spooled.
   */
  async append(tenant: TenantId, items: readonly PushItem[]): Promise<readonly SpoolOutcome[]> {
    if (this.#spool === undefined || this.#options.settings === undefined) {
      throw new SpoolUnavailableError(NONE, { reason: "closed" });
    }
    const acceptedAt = this.#options.settings.wallClock();
    const refused = await this.#encryptedAmong(tenant, items);
    const taken = items.filter(({ queue }) => !refused.has(queue));
    await this.#spool.append(taken.map((item) => ({ ...item, tenant, acceptedAt })));
    return items.map(({ messageId, queue }) =>
      refused.has(queue)
        ? { status: "failed", messageId, error: refusalOf(queue) }
        : { status: "buffered", messageId }
    );
  }

  /** Takes no more; resolves once nothing is under way and the locks are released. */
  async close(): Promise<void> {
    for (const adoption of this.#adoptions) adoption.close();
    await Promise.all(this.#adoptions.map(({ done }) => done));
    await this.#spool?.close();
  }

  /** The queues whose messages must not lie on the disk as they are. With a key none do. */
  async #encryptedAmong(tenant: TenantId, items: readonly PushItem[]): Promise<Set<string>> {
    const { cipher, configs, encryptedQueues, isPostgresAway } = this.#options;
    const encrypted = new Set<string>();
    if (cipher !== undefined) return encrypted;
    for (const queue of new Set(items.map(({ queue }) => queue))) {
      const key = { tenant, queue };
      let facts = configs.lastKnown(key);
      try {
        // A queue that PostgreSQL does not have is not encrypted.
        if (!isPostgresAway()) facts = await configs.get(key);
        else if (facts === undefined) throw new StoreUnavailableError("PostgreSQL is away");
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
        const isKnown = facts !== undefined || encryptedQueues.isClear(tenant, queue);
        if (!isKnown) throw unknownError(queue, error);
      }
      if (facts?.encryptionEnabled) encrypted.add(queue);
    }
    return encrypted;
  }

  #open(directory: string, { bytesMax, fileSystem, acquireLock, wallClock }: SpoolSettings) {
    const { cipher, sink, isPaused, clock, random, logger } = this.#options;
    return Spool.open({
      directory,
      bytesMax,
      fileSystem,
      acquireLock,
      wallClock,
      sink,
      ...(cipher === undefined ? {} : { cipher }),
      paused: isPaused,
      clock,
      random,
      logger,
    });
  }

  #adopt(directory: string, settings: SpoolSettings): void {
    const { logger } = this.#options;
    const open = () => this.#open(directory, settings);
    this.#adoptions.push(adoptSpool({ directory, open, logger }));
  }
}

function unknownError(queue: string, cause: Error): StoreUnavailableError {
  return new StoreUnavailableError(
    `${cause.message}; the queue "${queue}" cannot be spooled, since it is not known whether it is ` +
      `encrypted, and ${NO_KEY}`,
    { cause },
  );
}
