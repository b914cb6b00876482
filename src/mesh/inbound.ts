import { FRAME_LENGTH_MAX, FRAME_TYPE, type FrameDecoder, FrameError } from "../protocol/frame.ts";
import { decodeMessage, type Message } from "../protocol/messages.ts";
import { messageOf } from "./dial.ts";
import { BUFFERED_BYTES_MAX, type Guest, Guests } from "./guests.ts";
import type { Handshake } from "./handshake.ts";
import { LimitedLogger } from "./limited_logger.ts";
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

/** Frames that arrived together are applied for this many milliseconds before others get a turn. */
const TURN_MS_MAX = 20;

/** The clock is looked at after so many of them: it costs a good part of what applying one costs. */
const CLOCK_EVERY = 8;

/** What {@linkcode Inbound} rests on. */
export interface InboundOptions {
  /** Connections and time. */
  readonly runtime: Runtime;
  /** Where refusals are told, each kind a limited number of times a minute. */
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
  /** Applies a message. What it throws or rejects with is logged; the connection stays. */
  readonly onMessage: (message: Message, from: string) => void;
  /** The peer of that number is this very node. */
  readonly onSelf: (peer: number) => void;
}

/**
 * The receiving side: listens, lets in whoever says a good HELLO first, and hands on what they say.
 * It never writes (HSK-10).
 */
export class Inbound {
  readonly #options: InboundOptions;
  readonly #logger: Logger;
  readonly #pause: Pause;
  #listener: Listener | undefined;
  #closed = false;
  #bindFailed = false;
  #accepting: Promise<void> = Promise.resolve();
  readonly #guests = new Guests();
  readonly #serving = new Set<Promise<void>>();

  #received = 0;
  #handshakeFailures = 0;

  /** Does nothing yet. */
  constructor(options: InboundOptions) {
    this.#options = options;
    this.#logger = new LimitedLogger(options.logger, options.runtime.clock);
    this.#pause = new Pause(options.runtime.clock);
  }

  /** The port that is bound, or undefined while none is. */
  get boundPort(): number | undefined {
    return this.#listener?.port;
  }

  /** The port could not be bound, and is still to be. */
  get bindFailed(): boolean {
    return this.#bindFailed && !this.#closed;
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
    this.#guests.closeAll();
    await this.#accepting;
    await Promise.all(this.#serving);
  }

  async #bind(): Promise<void> {
    const { runtime, port, hostname } = this.#options;
    try {
      const where = hostname === undefined ? { port } : { port, hostname };
      const listener = await runtime.network.listen(where);
      if (this.#closed) return listener.close();
      this.#listener = listener;
      this.#bindFailed = false;
      this.#logger.info("mesh port is bound", { port: listener.port });
    } catch (error) {
      this.#bindFailed = true;
      this.#logger.warn("mesh port cannot be bound; nothing is received until it can", {
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
        this.#logger.warn("accept failed", { reason: messageOf(error) });
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
    const serving = this.#serve(this.#guests.admit(connection)).finally(() =>
      this.#serving.delete(serving)
    );
    this.#serving.add(serving);
  }

  async #serve(guest: Guest): Promise<void> {
    const decoder = this.#options.createDecoder();
    try {
      if (await this.#greet(guest, decoder)) await this.#receive(guest, decoder);
    } catch (error) {
      if (this.#guests.has(guest)) {
        this.#logger.warn("connection broke", {
          remote: remoteOf(guest),
          server: guest.serverId,
          reason: messageOf(error),
        });
      }
    } finally {
      this.#guests.close(guest);
    }
  }

  /** Takes the first frame and judges it; nothing is read meanwhile. True where it may come in. */
  async #greet(guest: Guest, decoder: FrameDecoder): Promise<boolean> {
    const { connection } = guest;
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
        if (late) return this.#refuse(guest, `no HELLO within ${HELLO_MS_MAX} ms`);
        if (count === null) return false;
        decoder.filled(count);
        frame = decoder.next();
      }
      deadline.cancel();
      const verdict = await this.#options.handshake.judge(frame);
      if (!this.#guests.has(guest)) return false;
      if (verdict.kind === "refused") return this.#refuse(guest, verdict.reason);
      if (verdict.kind === "self") {
        this.#options.onSelf(verdict.peer);
        return false;
      }
      decoder.lengthMax = FRAME_LENGTH_MAX;
      this.#welcome(guest, verdict.serverId);
      return true;
    } catch (error) {
      if (late) return this.#refuse(guest, `no HELLO within ${HELLO_MS_MAX} ms`);
      if (!(error instanceof FrameError)) throw error;
      // A length that no frame may have ends a stream, not a handshake (HSK-8).
      const isFrame = error.length > HELLO_LENGTH_MAX && error.length <= FRAME_LENGTH_MAX;
      if (isFrame) return this.#refuse(guest, `a HELLO of ${error.length} bytes`);
      throw error;
    } finally {
      deadline.cancel();
    }
  }

  #refuse(guest: Guest, reason: string): false {
    this.#handshakeFailures++;
    this.#logger.warn("handshake refused", { remote: remoteOf(guest), reason });
    return false;
  }

  #welcome(guest: Guest, serverId: string): void {
    this.#guests.welcome(guest, serverId);
    this.#options.liveness.heard(serverId);
    const fields = { server: serverId, remote: remoteOf(guest) };
    this.#logger.info("server has connected", fields);
    if (serverId === this.#options.serverId) {
      this.#logger.warn(
        "another node announces this node's own server id; give each its own",
        fields,
      );
    }
  }

  async #receive(guest: Guest, decoder: FrameDecoder): Promise<void> {
    const { connection, serverId } = guest;
    const { runtime: { clock } } = this.#options;
    if (serverId === undefined) return;
    for (;;) {
      let heard = false;
      let turnMs = clock.now();
      let applied = 0;
      for (let frame = decoder.next(); frame !== undefined; frame = decoder.next()) {
        if (!this.#guests.has(guest)) return;
        this.#received++;
        if (!heard) this.#options.liveness.heard(serverId);
        heard = true;
        if (frame.type === FRAME_TYPE.HEARTBEAT) continue;
        const message = decodeMessage(frame);
        if (message === undefined) continue;
        this.#dispatch(message, serverId);
        if (++applied % CLOCK_EVERY > 0 || clock.now() - turnMs <= TURN_MS_MAX) continue;
        // A slow handler must not keep heartbeats, and all else, waiting for thousands of frames.
        await new Promise<void>((resolve) => clock.setTimer(0, resolve));
        turnMs = clock.now();
      }
      const space = decoder.space();
      this.#bound(guest, decoder.bufferBytes);
      const count = await connection.read(space);
      if (count === null) return;
      decoder.filled(count);
    }
  }

  /** What all receive buffers take together has a limit too. */
  #bound(guest: Guest, bufferBytes: number): void {
    const closed = this.#guests.buffer(guest, bufferBytes);
    if (closed === undefined) return;
    this.#logger.warn("unfinished frames take too much memory; the largest is given up", {
      remote: remoteOf(closed),
      server: closed.serverId,
      bytes_max: BUFFERED_BYTES_MAX,
    });
  }

  #dispatch(message: Message, from: string): void {
    const failed = (error: unknown) => {
      this.#logger.error("a message could not be applied", {
        type: message.type,
        server: from,
        reason: messageOf(error),
      });
    };
    try {
      // A handler may be an async function: what that rejects with must not end the process.
      const result: unknown = this.#options.onMessage(message, from);
      if (result instanceof Promise) result.catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}

function remoteOf({ connection: { remote } }: Guest): string {
  return `${remote.ip} port ${remote.port}`;
}
