import type { Clock, Logger, Timer } from "./runtime.ts";

/** A dead id is forgotten after this many milliseconds. */
const FORGET_MS = 600_000;

/** No more ids than this are kept; beyond it the one unheard for longest goes first. */
const SERVERS_MAX = 64;

/** What is known of one server id. */
export interface ServerStats {
  /** The id that its HELLO announced. */
  readonly server_id: string;
  /** Heard from within the dead threshold (LIV-2). */
  readonly alive: boolean;
  /** Milliseconds since its last frame. */
  readonly last_frame_ms_ago: number;
}

/** What {@linkcode Liveness} rests on. */
export interface LivenessOptions {
  /** Time. */
  readonly clock: Clock;
  /** Where deaths and returns are told (LIV-3). */
  readonly logger: Logger;
  /** An id not heard from for longer than this, in milliseconds, is dead (LIV-2). */
  readonly deadThresholdMs: number;
}

interface Server {
  lastFrameMs: number;
  alive: boolean;
}

/**
 * Who is alive, judged by what comes in alone (LIV-1): the last frame of any kind, by the server id
 * that the connection's HELLO announced.
 */
export class Liveness {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #deadThresholdMs: number;
  readonly #servers = new Map<string, Server>();
  #timer: Timer | undefined;

  /** Knows nobody yet. */
  constructor(options: LivenessOptions) {
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.#deadThresholdMs = options.deadThresholdMs;
  }

  /** A frame came from a server; its HELLO counts as one. */
  heard(serverId: string): void {
    const now = this.#clock.now();
    const server = this.#servers.get(serverId);
    if (server === undefined) {
      if (this.#servers.size === SERVERS_MAX) this.#forgetLongestUnheard();
      this.#servers.set(serverId, { lastFrameMs: now, alive: true });
      this.#logger.info("server is alive", { server: serverId });
      this.#timer ??= this.#clock.setTimer(this.#deadThresholdMs + 1, () => this.#review());
      return;
    }
    // Judged before it is stamped: a death that no timer has seen yet is logged all the same.
    this.#judge(serverId, server);
    server.lastFrameMs = now;
    if (!server.alive) {
      server.alive = true;
      this.#logger.info("server is alive again", { server: serverId });
      this.#arm();
    }
  }

  /** Every id that is known, alive or dead (LIV-2). */
  servers(): ServerStats[] {
    const now = this.#clock.now();
    return [...this.#servers].map(([serverId, server]) => ({
      server_id: serverId,
      alive: now - server.lastFrameMs <= this.#deadThresholdMs,
      last_frame_ms_ago: Math.round(now - server.lastFrameMs),
    }));
  }

  /** Stops its timer. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #judge(serverId: string, server: Server): void {
    if (!server.alive) return;
    const silentMs = this.#clock.now() - server.lastFrameMs;
    if (silentMs <= this.#deadThresholdMs) return;
    server.alive = false;
    this.#logger.warn("server is dead", { server: serverId, silent_ms: Math.round(silentMs) });
  }

  #review(): void {
    for (const [serverId, server] of this.#servers) {
      this.#judge(serverId, server);
      if (!server.alive && this.#clock.now() - server.lastFrameMs >= this.#forgetMs) {
        this.#servers.delete(serverId);
      }
    }
    this.#arm();
  }

  /** One timer for all: set to the moment at which the next id dies or is forgotten. */
  #arm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    let dueMs = Infinity;
    for (const server of this.#servers.values()) {
      const limitMs = server.alive ? this.#deadThresholdMs + 1 : this.#forgetMs;
      dueMs = Math.min(dueMs, server.lastFrameMs + limitMs);
    }
    if (dueMs === Infinity) return;
    const waitMs = Math.max(1, dueMs - this.#clock.now());
    this.#timer = this.#clock.setTimer(waitMs, () => this.#review());
  }

  /** Dead for ten minutes: the time that it took to die comes on top. */
  get #forgetMs(): number {
    return this.#deadThresholdMs + FORGET_MS;
  }

  #forgetLongestUnheard(): void {
    let oldestId: string | undefined;
    let oldestMs = Infinity;
    for (const [serverId, server] of this.#servers) {
      if (server.lastFrameMs < oldestMs) {
        oldestMs = server.lastFrameMs;
        oldestId = serverId;
      }
    }
    if (oldestId !== undefined) this.#servers.delete(oldestId);
  }
}
