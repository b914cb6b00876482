import { FRAME_LENGTH_MAX, FRAME_TYPE, type FrameDecoder, FrameError } from "../protocol/frame.ts";
import { decodeMessage, type Message } from "../protocol/messages.ts";
import { messageOf } from "./dial.ts";
import type { Handshake } from "./handshake.ts";
import type { Liveness } from "./liveness.ts";
import { Pause } from "./pause.ts";
import type { Connection, Listener, Logger, Runtime } from "./runtime.ts";

/** A HELLO frame longer than this, in bytes, is refused. */
const HELLO_LENGTH_MAX = 65_536;

/** A HELLO that is not complete after this many milliseconds is refused. */
const HELLO_MS_MAX = 5000;

/** A port that could not be bound is tried again after this many milliseconds. */
const BIND_RETRY_MS = 5000;

/** After an accept that failed (no file descriptor free, say) the next waits this long, in milliseconds. */
const ACCEPT_RETRY_MS = 100;

/** Connections without a verified HELLO; beyond it the oldest of them is closed. */
const STRANGERS_MAX = 64;

/** Connections with a verified HELLO, in all; beyond it the oldest is closed. */
const PEERS_MAX = 256;

/** Connections of one server id; beyond it the oldest is closed. */
const CONNECTIONS_PER_SERVER_MAX = 4;

/** What {@linkcode Inbound} rests on. */
export interface InboundOptions {
  /** Connections and time. */
  readonly runtime: Runtime;
  /** Where refusals are told. */
  readonly logger: Logger;
  /** The port to listen on. */
  readonly port: number;
  /** The address to listen on; every address where it is left out. */
  readonly hostname?: string;
  /** This node's own id. */
  readonly serverId: string;
  /** Judges first frames. */
  readonly handshake: Handshake;
  /** Told of every frame's sender. */
  readonly liveness: Liveness;
  /** Makes the decoder of one connection. */
  readonly createDecoder: () => FrameDecoder;
  /** Applies a message. What it throws is logged; the connection stays. */
  readonly onMessage: (message: Message, from: string) => void;
  /** The peer of that number is this very node. */
  readonly onSelf: (peer: number) => void;
}

interface Accepted {
  readonly connection: Connection;
  readonly remote: string;
  /** Known once its HELLO is verified. */
  serverId: string | undefined;
}

/**
 * The receiving side: listens, lets in whoever says a good HELLO first, and hands on what they say.
 * It never writes (HSK-10).
 */
export class Inbound {
  readonly #options: InboundOptions;
  readonly #pause: Pause;
  #listener: Listener | undefined;
  #closed = false;
  #accepting: Promise<void> = Promise.resolve();
  /** Both in the order in which they came. */
  readonly #strangers = new Set<Accepted>();
  readonly #peers = new Set<Accepted>();
  readonly #serving = new Set<Promise<void>>();

  #received = 0;
  #handshakeFailures = 0;

  /** Does nothing yet. */
  constructor(options: InboundOptions) {
    this.#options = options;
    this.#pause = new Pause(options.runtime.clock);
  }

  /** The port that is bound, or undefined while none is. */
  get boundPort(): number | undefined {
    return this.#listener?.port;
  }

  /** Frames after the HELLO, of any kind (LIV-4). */
  get received(): number {
    return this.#received;
  }

  /** First frames that were refused (HSK-4). */
  get handshakeFailures(): number {
    return this.#handshakeFailures;
  }

  /** Binds the port and goes on to accept. Where it cannot be bound, goes on to try. */
  async start(): Promise<void> {
    await this.#bind();
    this.#accepting = this.#acceptAll();
  }

  /** Closes the port and every connection; resolves when no timer, socket or task is left. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#listener?.close();
    this.#pause.end();
    for (const accepted of [...this.#strangers, ...this.#peers]) accepted.connection.close();
    await this.#accepting;
    await Promise.all(this.#serving);
  }

  async #bind(): Promise<void> {
    const { runtime, port, hostname, logger } = this.#options;
    try {
      const where = hostname === undefined ? { port } : { port, hostname };
      const listener = await runtime.network.listen(where);
      if (this.#closed) return listener.close();
      this.#listener = listener;
      logger.info("mesh port is bound", { port: listener.port });
    } catch (error) {
      logger.warn("mesh port cannot be bound; nothing is received until it can", {
        port,
        reason: messageOf(error),
        retry_ms: BIND_RETRY_MS,
      });
    }
  }

  async #acceptAll(): Promise<void> {
    while (!this.#closed) {
      if (this.#listener === undefined) {
        await this.#pause.wait(BIND_RETRY_MS);
        if (!this.#closed) await this.#bind();
        continue;
      }
      let connection: Connection | null;
      try {
        connection = await this.#listener.accept();
      } catch (error) {
        this.#options.logger.warn("accept failed", { reason: messageOf(error) });
        await this.#pause.wait(ACCEPT_RETRY_MS);
        continue;
      }
      if (connection !== null) {
        this.#admit(connection);
        continue;
      }
      this.#listener.close();
      this.#listener = undefined;
    }
  }

  #admit(connection: Connection): void {
    if (this.#closed) return connection.close();
    if (this.#strangers.size >= STRANGERS_MAX) closeOldest(this.#strangers);
    const { ip, port } = connection.remote;
    const accepted = { connection, remote: `${ip} port ${port}`, serverId: undefined };
    this.#strangers.add(accepted);
    const serving = this.#serve(accepted).finally(() => this.#serving.delete(serving));
    this.#serving.add(serving);
  }

  async #serve(accepted: Accepted): Promise<void> {
    const { connection } = accepted;
    const decoder = this.#options.createDecoder();
    try {
      if (await this.#greet(accepted, decoder)) await this.#receive(accepted, decoder);
    } catch (error) {
      if (this.#strangers.has(accepted) || this.#peers.has(accepted)) {
        this.#options.logger.warn("connection broke", {
          remote: accepted.remote,
          server: accepted.serverId,
          reason: messageOf(error),
        });
      }
    } finally {
      connection.close();
      this.#strangers.delete(accepted);
      this.#peers.delete(accepted);
    }
  }

  /** Takes the first frame and judges it; nothing is read meanwhile. True where it may come in. */
  async #greet(accepted: Accepted, decoder: FrameDecoder): Promise<boolean> {
    const { connection } = accepted;
    decoder.lengthMax = HELLO_LENGTH_MAX;
    let late = false;
    const deadline = this.#options.runtime.clock.setTimer(HELLO_MS_MAX, () => {
      late = true;
      connection.close();
    });
    try {
      let frame = decoder.next();
      while (frame === undefined) {
        const count = await connection.read(decoder.space());
        if (late) return this.#refuse(accepted, `no HELLO within ${HELLO_MS_MAX} ms`);
        if (count === null) return false;
        decoder.filled(count);
        frame = decoder.next();
      }
      deadline.cancel();
      const verdict = await this.#options.handshake.judge(frame);
      if (!this.#strangers.has(accepted) || this.#closed) return false;
      if (verdict.kind === "refused") return this.#refuse(accepted, verdict.reason);
      if (verdict.kind === "self") {
        this.#options.onSelf(verdict.peer);
        return false;
      }
      decoder.lengthMax = FRAME_LENGTH_MAX;
      this.#welcome(accepted, verdict.serverId);
      return true;
    } catch (error) {
      if (late) return this.#refuse(accepted, `no HELLO within ${HELLO_MS_MAX} ms`);
      if (!(error instanceof FrameError)) throw error;
      // A length that no frame may have ends a stream, not a handshake (HSK-8).
      const isFrame = error.length > HELLO_LENGTH_MAX && error.length <= FRAME_LENGTH_MAX;
      if (isFrame) return this.#refuse(accepted, `a HELLO of ${error.length} bytes`);
      throw error;
    } finally {
      deadline.cancel();
    }
  }

  #refuse(accepted: Accepted, reason: string): false {
    this.#handshakeFailures++;
    this.#options.logger.warn("handshake refused", { remote: accepted.remote, reason });
    return false;
  }

  #welcome(accepted: Accepted, serverId: string): void {
    const { logger, liveness } = this.#options;
    accepted.serverId = serverId;
    this.#strangers.delete(accepted);
    const same = [...this.#peers].filter((other) => other.serverId === serverId);
    if (same.length >= CONNECTIONS_PER_SERVER_MAX) closeOldest(this.#peers, same);
    else if (this.#peers.size >= PEERS_MAX) closeOldest(this.#peers);
    this.#peers.add(accepted);
    liveness.heard(serverId);
    logger.info("server has connected", { server: serverId, remote: accepted.remote });
    if (serverId === this.#options.serverId) {
      logger.warn("another node announces this node's own server id; give each its own", {
        server: serverId,
        remote: accepted.remote,
      });
    }
  }

  async #receive(accepted: Accepted, decoder: FrameDecoder): Promise<void> {
    const { connection, serverId } = accepted;
    if (serverId === undefined) return;
    for (;;) {
      let heard = false;
      for (let frame = decoder.next(); frame !== undefined; frame = decoder.next()) {
        if (!this.#peers.has(accepted)) return;
        this.#received++;
        if (!heard) this.#options.liveness.heard(serverId);
        heard = true;
        if (frame.type === FRAME_TYPE.HEARTBEAT) continue;
        const message = decodeMessage(frame);
        if (message !== undefined) this.#dispatch(message, serverId);
      }
      const count = await connection.read(decoder.space());
      if (count === null) return;
      decoder.filled(count);
    }
  }

  #dispatch(message: Message, from: string): void {
    try {
      this.#options.onMessage(message, from);
    } catch (error) {
      this.#options.logger.error("a message could not be applied", {
        type: message.type,
        server: from,
        reason: messageOf(error),
      });
    }
  }
}

/** Closes the first of `candidates` and takes it out of `all`. */
function closeOldest(all: Set<Accepted>, candidates: Iterable<Accepted> = all): void {
  for (const oldest of candidates) {
    all.delete(oldest);
    oldest.connection.close();
    return;
  }
}
