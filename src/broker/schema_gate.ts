import { Backoff } from "../mesh/backoff.ts";
import type { Clock, Logger, Random, Timer } from "../mesh/runtime.ts";
import { type Store, StoreUnavailableError } from "./store/store.ts";

/** What a {@linkcode SchemaGate} is made of. */
export interface SchemaGateOptions {
  /** Whose schema it is. */
  readonly store: Store;
  /** Time. */
  readonly clock: Clock;
  /** For jitter. */
  readonly random: Random;
  /** Where failed attempts are reported. */
  readonly logger: Logger;
}

/**
 * Sees to it that the schema is made or migrated before anything else is asked of PostgreSQL. While
 * PostgreSQL is away it tries again, by a backoff of 250 ms to 5 s.
 */
export class SchemaGate {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #backoff: Backoff;
  #isOpen = false;
  #isClosed = false;
  #attempt: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;

  /** Puts it together. */
  constructor({ store, clock, random, logger }: SchemaGateOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
    this.#backoff = new Backoff(random);
  }

  /**
   * Makes the first attempt. PostgreSQL being away is no failure: more attempts follow. Rejects where
   * PostgreSQL refuses, say because the schema is newer than this program.
   */
  async start(): Promise<void> {
    const attempt = this.#migrate();
    this.#attempt = attempt.catch(() => {});
    await attempt;
  }

  /**
   * Lets pass once the schema is there.
   *
   * @throws {StoreUnavailableError} before that.
   */
  requireOpen(): void {
    if (this.#isOpen) return;
    throw new StoreUnavailableError("PostgreSQL has not been reached since the start");
  }

  /** Makes no more attempts; resolves once none is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#attempt;
  }

  async #migrate(): Promise<void> {
    try {
      await this.#store.migrate();
      this.#isOpen = true;
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
      const delayMs = this.#retry();
      this.#logger.warn("PostgreSQL is away; trying again", { reason: error.message, delayMs });
    }
  }

  /** Sets the next attempt. Returns the delay until then, in milliseconds. */
  #retry(): number | undefined {
    if (this.#isClosed) return undefined;
    const delayMs = Math.round(this.#backoff.next());
    this.#timer = this.#clock.setTimer(delayMs, () => {
      this.#attempt = this.#migrate().then(
        () => {
          if (this.#isOpen) this.#logger.info("PostgreSQL is back and the schema is ready");
        },
        (error) => {
          // It is too late to refuse the start: an operator has to see to it, then it goes on.
          const delayMs = this.#retry();
          this.#logger.error("The schema is refused; trying again", { error, delayMs });
        },
      );
    });
    return delayMs;
  }
}
