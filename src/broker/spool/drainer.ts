import { Backoff } from "../../mesh/backoff.ts";
import { Pause } from "../../mesh/pause.ts";
import type { Clock, Logger, Random } from "../../mesh/runtime.ts";
import type { Catalog } from "./catalog.ts";
import { type DrainStep, SinkError } from "./drain_step.ts";
import { describeError, RefusedRecordsError } from "./errors.ts";
import type { Handover } from "./handover.ts";
import type { SpoolLog } from "./spool_log.ts";

/** How often it looks whether it may drain, in milliseconds, should nobody tell. */
const PAUSED_MS = 1000;

/** What a {@linkcode Drainer} is made of. */
export interface DrainerOptions {
  /** What to drain. */
  readonly catalog: Catalog;
  /** Drains one batch. */
  readonly step: DrainStep;
  /** Told when pushes should wait for a batch. */
  readonly handover: Handover;
  /** Nothing drains while this is true. */
  readonly paused: () => boolean;
  /** What is no more than this, in records, is one batch. */
  readonly batchRecordsMax: number;
  /** What is no more than this, in bytes, is one batch. */
  readonly batchBytesMax: number;
  /** Told after each step; with the error where the file system failed. */
  readonly onDone: (error?: unknown) => void;
  /** Time. */
  readonly clock: Clock;
  /** For jitter. */
  readonly random: Random;
  /** Where trouble is reported. */
  readonly logger: Logger;
}

/** Drains a spool, oldest first, until it is closed. After a failure it waits 250 ms to 5 s. */
export class Drainer {
  readonly #options: DrainerOptions;
  readonly #backoff: Backoff;
  readonly #pause: Pause;
  #isClosed = false;
  #sinkError: string | undefined;
  /** How many records waited after the batch before; none came before it after a failure. */
  #pendingBefore = Infinity;
  #resume: (() => void) | undefined;
  #whenDrained: (() => void)[] = [];
  #running: Promise<void> = Promise.resolve();

  /** Drains nothing yet. */
  constructor(options: DrainerOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.random);
    this.#pause = new Pause(options.clock);
  }

  /** What the sink said last, where it failed; undefined where it did not. */
  get sinkError(): string | undefined {
    return this.#sinkError;
  }

  /** Begins. */
  start(): void {
    this.#running = this.#run();
  }

  /** Looks now whether it may drain, and does not wait out a backoff. */
  wake(): void {
    this.#pause.end();
    this.#resume?.();
  }

  /** There is something new to drain. */
  noteAppended(): void {
    this.#resume?.();
  }

  /** Resolves as soon as nothing is left that can be drained, or it is closed. */
  drained(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenDrained.push(resolve);
      this.wake();
    });
  }

  /** Stops; resolves once a batch that is under way has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.wake();
    await this.#running;
    this.#options.handover.update(false);
    this.#resolveDrained();
  }

  async #run(): Promise<void> {
    const { catalog, paused, handover } = this.#options;
    while (!this.#isClosed) {
      if (paused()) {
        if (handover.isOpen) handover.update(false);
        await this.#pause.wait(PAUSED_MS);
        continue;
      }
      const log = catalog.logs.find((log) => log.hasWork);
      if (log === undefined) {
        this.#resolveDrained();
        await this.#rest();
      } else await this.#attempt(log);
    }
  }

  async #attempt(log: SpoolLog): Promise<void> {
    const { step, handover, onDone } = this.#options;
    try {
      await step.run(log);
    } catch (error) {
      this.#pendingBefore = Infinity;
      handover.update(false);
      await this.#recover(error);
      return;
    }
    this.#backoff.reset();
    this.#sinkError = undefined;
    onDone();
    handover.update(this.#isNearEnd());
  }

  async #recover(error: unknown): Promise<void> {
    const { logger, onDone } = this.#options;
    const delayMs = Math.round(this.#backoff.next());
    if (error instanceof SinkError || error instanceof RefusedRecordsError) {
      this.#sinkError = describeError(error);
      logger.warn("The spool could not be drained; trying again", { error, delayMs });
    } else {
      onDone(error);
      logger.error("The spool could not be read; trying again", { error, delayMs });
    }
    if (!this.#isClosed) await this.#pause.wait(delayMs);
  }

  /**
   * Whether pushes had better wait: the next batch is the last one, or more was appended during this
   * one than it drained, which would go on for ever.
   */
  #isNearEnd(): boolean {
    const { catalog, batchRecordsMax, batchBytesMax, paused } = this.#options;
    const count = catalog.pendingCount({ isLocked: false });
    const isOneBatch = count <= batchRecordsMax &&
      catalog.pendingBytes({ isLocked: false }) <= batchBytesMax;
    const isGaining = count < this.#pendingBefore;
    this.#pendingBefore = count;
    return count > 0 && !paused() && (isOneBatch || !isGaining);
  }

  /** Resolves when there may be something to drain. */
  async #rest(): Promise<void> {
    await new Promise<void>((resolve) => this.#resume = resolve);
    this.#resume = undefined;
  }

  #resolveDrained(): void {
    const waiting = this.#whenDrained;
    this.#whenDrained = [];
    for (const resolve of waiting) resolve();
  }
}
