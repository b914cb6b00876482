import { buildHello, createNonce, type Mac } from "../protocol/hello.ts";
import { type Backoff, BACKOFF_MS_MAX } from "./backoff.ts";
import { dial, messageOf } from "./dial.ts";
import { Pause } from "./pause.ts";
import type { PeerState, PeerStats } from "./peer_stats.ts";
import type { PeerAddress } from "./peers.ts";
import type { Connection, Logger, Runtime, Timer } from "./runtime.ts";
import type { SendQueue } from "./send_queue.ts";
import { StallWatch } from "./stall_watch.ts";

/** A peer that turned out to be this very node is looked at again after this many milliseconds. */
const SELF_RECHECK_MS = 60_000;

/** Long enough for this node's own listener to meet its own HELLO, in milliseconds. */
const SELF_PROOF_MS = 1000;

/** So many connections in a row have to end that way: one may be chance and a replay. */
const SELF_PROOFS = 2;

/** What an {@linkcode OutboundPeer} rests on. */
export interface OutboundOptions {
  /** Where to dial. */
  readonly address: PeerAddress;
  /** Connections, time, randomness. */
  readonly runtime: Runtime;
  /** Where comings and goings are told. */
  readonly logger: Logger;
  /** What this node calls itself. */
  readonly serverId: string;
  /** Signs the HELLO; undefined in open mode. */
  readonly mac: Mac | undefined;
  /** The waits between attempts. */
  readonly backoff: Backoff;
  /** Holds what waits for the peer. */
  readonly queue: SendQueue;
  /** A complete HEARTBEAT frame. */
  readonly heartbeat: Uint8Array;
  /** A heartbeat goes out this often, in milliseconds (SND-5). */
  readonly heartbeatMs: number;
  /** A peer that takes no byte for this many milliseconds is disconnected. */
  readonly stallMs: number;
  /** Told of each nonce before its HELLO is written. */
  readonly onNonce: (nonce: string) => void;
}

interface Session {
  readonly connection: Connection;
  readonly ended: Promise<void>;
  readonly resolve: () => void;
}

/**
 * One peer, seen from the sending side: dials it, again and again (TOP-4), says HELLO, and writes
 * what waits for it. {@linkcode OutboundPeer.send | send} never waits: what cannot be queued is
 * dropped and counted (SND-1, SND-2).
 */
export class OutboundPeer {
  readonly #options: OutboundOptions;
  readonly #queue: SendQueue;
  readonly #pause: Pause;
  readonly #closing = new AbortController();
  #running: Promise<void> = Promise.resolve();

  #state: PeerState = "waiting";
  #self = false;
  /** When this node met the HELLO of the present session; undefined while it has not. */
  #selfMetMs: number | undefined;
  /** How many sessions in a row have ended right after that. */
  #selfProofs = 0;
  #session: Session | undefined;
  #connectedMs = 0;
  #lastError: string | null = null;
  #lastLogged: string | null = null;
  /** The last connection ended before it proved itself: the next is announced once it has. */
  #suspect = false;

  /** A turn of {@linkcode OutboundPeer.#write} is due or under way. */
  #writing = false;
  /** The latest such turn. */
  #turn: Promise<void> = Promise.resolve();
  readonly #stall: StallWatch;
  #heartbeatTimer: Timer | undefined;

  #asked = 0;
  #sent = 0;
  #dropped = 0;
  #coalesced = 0;

  /** Does nothing yet. */
  constructor(options: OutboundOptions) {
    this.#options = options;
    this.#queue = options.queue;
    const { runtime: { clock }, stallMs } = options;
    this.#pause = new Pause(clock);
    this.#stall = new StallWatch(clock, {
      stallMs,
      onStall: () => this.#end(`the peer took no byte for ${stallMs} ms`),
    });
  }

  /** Whether this peer turned out to be this very node. */
  get self(): boolean {
    return this.#self;
  }

  /** Begins to dial. */
  start(): void {
    this.#running = this.#run();
  }

  /** Ends everything; resolves when no timer, socket or task is left. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the node is closing"));
    this.#end("the node is closing");
    this.#pause.end();
    await this.#running;
  }

  /** Queues a frame, or drops and counts it. Copies it; never waits. */
  send(frame: Uint8Array): void {
    if (this.#self) return;
    this.#asked++;
    if (this.#state !== "connected" || !this.#queue.push(frame)) {
      this.#dropped++;
      return;
    }
    if (this.#writing) return;
    this.#writing = true;
    // What else is asked for in this turn shares the write.
    queueMicrotask(() => this.#turn = this.#write());
  }

  /** Counts frames that were asked for and leave inside another one. */
  countCoalesced(count: number): void {
    if (this.#self) return;
    this.#asked += count;
    this.#coalesced += count;
  }

  /**
   * This node met the HELLO of the present session, on a connection that it closes at once. Where the
   * session ends with it, twice in a row, the peer is the node itself, and nothing is asked of it any
   * more. Else somebody has captured the HELLO and sent it back: that must not cut the peer off.
   */
  meetSelf(): void {
    if (this.#session !== undefined) this.#selfMetMs = this.#options.runtime.clock.now();
  }

  /** How it stands. */
  stats(): PeerStats {
    const { host, port } = this.#options.address;
    const connected = this.#state === "connected";
    return {
      host,
      port,
      connected,
      resolved: connected,
      resolved_ip: connected ? this.#session?.connection.remote.ip ?? null : null,
      state: this.#state,
      last_error: connected && this.#proved() ? null : this.#lastError,
      messages_asked: this.#asked,
      messages_sent: this.#sent,
      messages_dropped: this.#dropped,
      messages_coalesced: this.#coalesced,
      queued: this.#queue.frames,
    };
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #run(): Promise<void> {
    const { backoff } = this.#options;
    while (!this.#closed) {
      await this.#attempt();
      if (this.#closed) break;
      this.#state = this.#self ? "self" : "waiting";
      await this.#pause.wait(this.#self ? SELF_RECHECK_MS : backoff.next());
    }
    this.#state = "closed";
  }

  /** Dials once and stays for as long as the connection lasts. */
  async #attempt(): Promise<void> {
    const { address, runtime: { network, clock } } = this.#options;
    this.#state = "dialling";
    let connection: Connection;
    try {
      connection = await dial(address, { network, clock, signal: this.#closing.signal });
    } catch (error) {
      this.#self = false;
      this.#fail(`dial failed: ${messageOf(error)}`);
      return;
    }
    const session = openSession(connection);
    this.#session = session;
    if (this.#closed) this.#end("the node is closing");
    const reading = this.#watchEnd(connection);
    await this.#greet(connection);
    await session.ended;
    await reading;
    // It still has to say what the kernel took: nothing of it may reach the next session (TOP-5).
    await this.#turn;
  }

  /** Says HELLO and, once the kernel has it whole, counts the peer as connected. */
  async #greet(connection: Connection): Promise<void> {
    const { runtime: { random, clock }, serverId, mac, onNonce } = this.#options;
    this.#state = "greeting";
    try {
      const nonce = createNonce(random);
      onNonce(nonce);
      const hello = await buildHello({ serverId, nonce, mac });
      for (let taken = 0; taken < hello.length;) {
        if (this.#session?.connection !== connection) return;
        taken += await this.#hand(connection, hello.subarray(taken));
      }
      if (this.#self) await this.#pause.wait(SELF_PROOF_MS);
    } catch (error) {
      this.#end(messageOf(error));
      return;
    }
    if (this.#session?.connection !== connection) return;
    this.#self = false;
    this.#state = "connected";
    this.#connectedMs = clock.now();
    if (!this.#suspect) this.#announce(connection);
    this.#scheduleHeartbeat(connection);
  }

  #announce(connection: Connection): void {
    this.#suspect = false;
    this.#lastLogged = null;
    this.#options.logger.info("peer is connected", this.#fields({ ip: connection.remote.ip }));
  }

  /** A listener never writes (HSK-10): this reads for the end alone, and drops what else comes. */
  async #watchEnd(connection: Connection): Promise<void> {
    const buffer = new Uint8Array(256);
    let reason = "closed by the peer";
    try {
      while (await connection.read(buffer) !== null);
    } catch (error) {
      reason = messageOf(error);
    }
    if (this.#session?.connection === connection) this.#endByPeer(reason);
  }

  async #write(): Promise<void> {
    const connection = this.#session?.connection;
    try {
      while (connection !== undefined && this.#session?.connection === connection) {
        const run = this.#queue.next();
        if (run === undefined) break;
        // What the kernel took counts as sent, also where the session ended meanwhile.
        this.#sent += this.#queue.taken(await this.#hand(connection, run));
      }
    } catch (error) {
      if (this.#session?.connection === connection) this.#endByPeer(messageOf(error));
    }
    this.#writing = false;
    if (this.#session === undefined) this.#dropQueue();
  }

  #dropQueue(): void {
    this.#dropped += this.#queue.clear();
  }

  /** Writes once, under the eye of the stall watch. */
  async #hand(connection: Connection, bytes: Uint8Array): Promise<number> {
    this.#stall.handed();
    const count = await connection.write(bytes);
    if (this.#session?.connection === connection) this.#stall.taken();
    return count;
  }

  #scheduleHeartbeat(connection: Connection): void {
    const { runtime: { clock }, heartbeat, heartbeatMs } = this.#options;
    this.#heartbeatTimer = clock.setTimer(heartbeatMs, () => {
      // Behind a full queue a heartbeat would say nothing that the queue does not.
      if (!this.#queue.full) this.send(heartbeat);
      if (this.#suspect && this.#proved()) this.#announce(connection);
      this.#scheduleHeartbeat(connection);
    });
  }

  /** A listener that refuses the HELLO says so by closing alone: soon after it, that is suspected. */
  #endByPeer(reason: string): void {
    const isSoon = this.#state === "connected" && !this.#proved();
    this.#end(isSoon ? `${reason} soon after the HELLO${HINT}` : reason);
  }

  /** Ends the session, if there is one: what waited for it is stale from here on (TOP-5). */
  #end(reason: string): void {
    const session = this.#session;
    if (session === undefined) return;
    const connected = this.#state === "connected";
    const proved = connected && this.#proved();
    this.#session = undefined;
    this.#selfProofs = this.#hasJustMetSelf() ? this.#selfProofs + 1 : 0;
    this.#selfMetMs = undefined;
    this.#self = this.#selfProofs >= SELF_PROOFS;
    this.#state = this.#self ? "self" : "waiting";
    this.#stall.stop();
    this.#heartbeatTimer?.cancel();
    this.#heartbeatTimer = undefined;
    // A turn that is under way knows best how much was still sent, and drops the rest itself.
    if (!this.#writing) this.#dropQueue();
    if (proved) this.#options.backoff.reset();
    this.#suspect = connected && !proved;
    this.#pause.end();
    session.connection.close();
    session.resolve();
    if (this.#closed) return;
    if (this.#self) {
      this.#lastError = null;
      this.#options.logger.info("peer is this node itself", this.#fields({}));
    } else if (this.#selfProofs > 0) {
      this.#lastError = "it seems to be this node itself";
    } else {
      this.#fail(reason);
    }
  }

  /** The session ends right after its HELLO came to this node: both were ends of one connection. */
  #hasJustMetSelf(): boolean {
    if (this.#selfMetMs === undefined) return false;
    return this.#options.runtime.clock.now() - this.#selfMetMs <= SELF_PROOF_MS;
  }

  /** The connection has lasted longer than the backoff's cap. */
  #proved(): boolean {
    return this.#options.runtime.clock.now() - this.#connectedMs > BACKOFF_MS_MAX;
  }

  #fail(reason: string): void {
    if (this.#closed) return;
    this.#lastError = reason;
    // Attempts fail alike for as long as a peer is down: said once is enough.
    if (reason === this.#lastLogged) return;
    this.#lastLogged = reason;
    this.#options.logger.warn("peer is not connected", this.#fields({ reason }));
  }

  #fields(more: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { host, port } = this.#options.address;
    return { peer: `${host.includes(":") ? `[${host}]` : host}:${port}`, ...more };
  }
}

const HINT = ": do both nodes have the same QUEEN_SYNC_SECRET?";

function openSession(connection: Connection): Session {
  let resolve = () => {};
  const ended = new Promise<void>((done) => resolve = done);
  return { connection, ended, resolve };
}
