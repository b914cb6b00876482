/**
 * The connections to PostgreSQL, and the deadlines of what is asked of it.
 *
 * @module
 */

import type { Clock, Timer } from "../../mesh/runtime.ts";
import {
  Connection,
  type Parameter,
  type Row,
  type Send,
  statementTimeoutMs,
} from "./connection.ts";
import { isRetriable, leavesConnectionSound, toStoreError } from "./errors.ts";
import { type PoolStats, StoreUnavailableError } from "./store.ts";

/** What a {@linkcode Pool} is made of. */
export interface PoolOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** At most this many connections. */
  readonly size: number;
  /** Every call ends within this time, in milliseconds, unless it is given a multiple of it. */
  readonly timeoutMs: number;
  /** Time. */
  readonly clock: Clock;
}

/** How one statement is sent. */
export interface QueryOptions {
  /** How many times the pool's timeout it may take: a whole number from 1, which is the default. */
  readonly timeouts?: number;
}

/** How often a statement is tried that PostgreSQL rolled back for a deadlock. */
const ATTEMPTS_MAX = 5;

/** How long an idle connection gets to say goodbye, in milliseconds. */
const GOODBYE_MS = 1000;

/** A call that waits for a connection. */
interface Waiting {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: StoreUnavailableError) => void;
}

/**
 * A pool in which each connection serves one call at a time. Every call ends within the timeout,
 * whatever PostgreSQL does; a connection that has not answered for that long is given up, and its
 * place is free for a new one.
 */
export class Pool {
  readonly #url: string;
  readonly #size: number;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #idle: Connection[] = [];
  readonly #waiting = new Set<Waiting>();
  readonly #ending = new Set<Promise<void>>();
  #busy = 0;
  #isClosed = false;
  #closing: Promise<void> | undefined;
  #drained: (() => void) | undefined;

  /** Sets the pool up. Nothing is connected yet. */
  constructor({ url, size, timeoutMs, clock }: PoolOptions) {
    this.#url = url;
    this.#size = size;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  /** How the connections stand. */
  get stats(): PoolStats {
    return {
      size: this.#size,
      busy: this.#busy,
      idle: this.#idle.length,
      waiting: this.#waiting.size,
    };
  }

  /**
   * Sends one statement, which is a transaction by itself. It is sent again, within the deadline,
   * only where PostgreSQL rolled it back for a deadlock.
   *
   * @throws {StoreUnavailableError} If PostgreSQL is away or the outcome is unknown.
   */
  query(
    text: string,
    parameters: readonly Parameter[],
    { timeouts = 1 }: QueryOptions = {},
  ): Promise<readonly Row[]> {
    if (timeouts === 1) return this.#call((connection) => connection.query(text, parameters));
    const timeoutMs = timeouts * this.#timeoutMs;
    return this.#call((connection) =>
      connection.transaction(async (send) => {
        await send(`set local statement_timeout = ${statementTimeoutMs(timeoutMs)}`);
        return await send(text, parameters);
      }), timeoutMs);
  }

  /** Runs statements in one transaction, under the same deadline as one statement. */
  transaction<T>(work: (send: Send) => Promise<T>): Promise<T> {
    return this.#call((connection) => connection.transaction(work));
  }

  /** Refuses new calls, waits for those under way and ends the connections. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    for (const waiting of this.#waiting) waiting.reject(closedError());
    this.#waiting.clear();
    if (this.#busy > 0) await new Promise<void>((resolve) => this.#drained = resolve);
    for (const connection of this.#idle.splice(0)) this.#end(connection, GOODBYE_MS);
    await Promise.all(this.#ending);
  }

  async #call<T>(
    work: (connection: Connection) => Promise<T>,
    timeoutMs = this.#timeoutMs,
  ): Promise<T> {
    const deadline = this.#clock.now() + timeoutMs;
    for (let attempt = 1;; attempt++) {
      try {
        const connection = await this.#acquire(deadline, timeoutMs);
        return await this.#use(connection, { deadline, timeoutMs, work });
      } catch (error) {
        if (attempt === ATTEMPTS_MAX || !isRetriable(error)) throw toStoreError(error);
      }
    }
  }

  /** Resolves to a connection for this call alone. */
  #acquire(deadline: number, timeoutMs: number): Promise<Connection> {
    if (this.#isClosed) return Promise.reject(closedError());
    if (this.#busy < this.#size) {
      const connection = this.#open();
      this.#busy++;
      return Promise.resolve(connection);
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        resolve(connection) {
          timer.cancel();
          resolve(connection);
        },
        reject(error) {
          timer.cancel();
          reject(error);
        },
      };
      const timer = this.#clock.setTimer(deadline - this.#clock.now(), () => {
        this.#waiting.delete(waiting);
        reject(
          new StoreUnavailableError(
            `All ${this.#size} connections to PostgreSQL were busy for ${timeoutMs} ms`,
          ),
        );
      });
      this.#waiting.add(waiting);
    });
  }

  /** The connection used last, since it is the likeliest to be alive; a new one if there is none. */
  #open(): Connection {
    for (;;) {
      const connection = this.#idle.pop();
      if (!connection) return new Connection({ url: this.#url, timeoutMs: this.#timeoutMs });
      if (connection.isOpen) return connection;
    }
  }

  #use<T>(
    connection: Connection,
    { deadline, timeoutMs, work }: {
      deadline: number;
      timeoutMs: number;
      work: (connection: Connection) => Promise<T>;
    },
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = this.#clock.now();
      let isReleased = false;
      let timer: Timer;
      const release = (isSound: boolean) => {
        if (isReleased) return;
        isReleased = true;
        timer.cancel();
        this.#release(connection, isSound);
      };
      const giveUp = () => {
        reject(new StoreUnavailableError(`PostgreSQL gave no answer in ${timeoutMs} ms`));
        // A call that waited for its connection has used part of its time up. That is no reason to
        // break the connection: it gets as long to answer as any other.
        const left = start + timeoutMs - this.#clock.now();
        if (left > 0) timer = this.#clock.setTimer(left, giveUp);
        else release(false);
      };
      timer = this.#clock.setTimer(deadline - start, giveUp);
      work(connection).then(
        (result) => {
          release(true);
          resolve(result);
        },
        (error) => {
          release(leavesConnectionSound(error));
          reject(error);
        },
      );
    });
  }

  /** Hands the connection, or a new one in its place, to who waits longest. */
  #release(connection: Connection, isSound: boolean): void {
    if (isSound && connection.isOpen) this.#idle.push(connection);
    else this.#end(connection, 0);
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      next.resolve(this.#open());
      return;
    }
    this.#busy--;
    if (this.#busy === 0) this.#drained?.();
  }

  #end(connection: Connection, graceMs: number): void {
    const ending = connection.end(graceMs).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

function closedError(): StoreUnavailableError {
  return new StoreUnavailableError("The store is closed");
}
