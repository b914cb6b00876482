import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { describeFrame, type Frame, FRAME_TYPES, FrameReader, FramingError } from "./frame.ts";
import { HarnessError } from "./failure.ts";
import type { Recorder } from "./transcript.ts";

/** What a {@linkcode PeerListener} does with a connection: read it, let it wait, or close it. */
export type ListenerMode = "read" | "pause" | "close";

/** A frame that the node sent. */
export interface ReceivedFrame extends Frame {
  /** When its last byte came, on the clock of `performance.now()`, in milliseconds. */
  readonly at: number;
  /** The connection that brought it. */
  readonly connection: number;
  /** Its place on the connection: 0 is the first, which ought to be the HELLO. */
  readonly position: number;
}

/** A connection that the node dialled. */
export interface ReceivedConnection {
  /** Its number: 0 is the first that this listener accepted. */
  readonly number: number;
  /** When it was accepted, on the clock of `performance.now()`, in milliseconds. */
  readonly at: number;
  /** The frames that have come, the HELLO among them. */
  readonly frames: readonly ReceivedFrame[];
  /** Whether it is over. */
  readonly ended: boolean;
  /** What was wrong with its framing, if anything was. */
  readonly violation: string | undefined;
}

/** Where a {@linkcode PeerListener} listens. */
export interface ListenerOptions {
  /** The port. */
  readonly port: number;
  /** The address to bind; 127.0.0.1 where it is left out. */
  readonly host?: string;
  /** What the transcript calls it. */
  readonly label: string;
  /** Takes what happens. */
  readonly record: Recorder;
}

interface Accepted {
  readonly socket: Socket;
  readonly connection: MutableConnection;
}

type MutableConnection = { -readonly [K in keyof ReceivedConnection]: ReceivedConnection[K] } & {
  frames: ReceivedFrame[];
};

/**
 * The suite as a configured peer: it records what the node sends. It never writes, as a listener
 * never does (HSK-10).
 */
export class PeerListener {
  readonly #options: ListenerOptions;
  readonly #accepted = new Set<Accepted>();
  readonly #connections: MutableConnection[] = [];
  readonly #frames: ReceivedFrame[] = [];
  #server: Server | undefined;
  #mode: ListenerMode = "read";

  /** Listens nowhere yet. */
  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  /** What a node dials to reach it. */
  get address(): string {
    return `${this.#options.host ?? "127.0.0.1"}:${this.port}`;
  }

  /** Its port. */
  get port(): number {
    return this.#options.port;
  }

  /** Every connection that it ever accepted, in order. */
  get connections(): readonly ReceivedConnection[] {
    return this.#connections;
  }

  /** Every frame that it ever received, in the order in which they came. */
  get frames(): readonly ReceivedFrame[] {
    return this.#frames;
  }

  /** How many connections are open. */
  get openCount(): number {
    return this.#accepted.size;
  }

  /** What it does with connections. */
  get mode(): ListenerMode {
    return this.#mode;
  }

  /**
   * Changes what it does with connections: with those that it has, too.
   *
   * `"pause"` reads nothing more, so that the kernel's buffers fill; `"close"` closes.
   */
  set mode(mode: ListenerMode) {
    if (this.#mode === mode) return;
    this.#mode = mode;
    this.#record(`mode ${mode}`);
    for (const accepted of this.#accepted) this.#apply(accepted);
  }

  /**
   * Starts to listen; harmless where it does already.
   *
   * @throws {HarnessError} If the port cannot be bound.
   */
  async listen(): Promise<void> {
    if (this.#server) return;
    const server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    try {
      const listening = once(server, "listening");
      server.listen({ port: this.port, host: this.#options.host ?? "127.0.0.1" });
      await listening;
    } catch (error) {
      throw new HarnessError(
        `the suite cannot listen on ${this.address} as a peer: ${(error as Error).message}`,
      );
    }
    this.#server = server;
    this.#record("listens");
  }

  /** Stops listening, so that dials are refused, and closes every connection. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = once(server, "close");
    server.close();
    this.disconnect();
    await closed;
    this.#record("has stopped listening");
  }

  /** Closes every connection and goes on listening. */
  disconnect(): void {
    for (const { socket } of this.#accepted) socket.destroy();
  }

  #accept(socket: Socket): void {
    const number = this.#connections.length;
    const connection: MutableConnection = {
      number,
      at: performance.now(),
      frames: [],
      ended: false,
      violation: undefined,
    };
    const accepted = { socket, connection };
    this.#connections.push(connection);
    this.#accepted.add(accepted);
    this.#record(`accepted connection ${number}`);
    const reader = new FrameReader();
    socket.on("data", (chunk: Uint8Array) => this.#take(accepted, reader, chunk));
    const end = (how: string) => {
      if (connection.ended) return;
      connection.ended = true;
      this.#accepted.delete(accepted);
      if (reader.pendingBytes > 0) how += `, ${reader.pendingBytes} bytes into a frame`;
      this.#record(`connection ${number} ${how}`);
    };
    socket.once("end", () => end("ended by the node"));
    socket.once("error", (error) => end(`broke: ${error.message}`));
    socket.once("close", () => end("closed"));
    this.#apply(accepted);
  }

  #apply({ socket }: Accepted): void {
    if (this.#mode === "close") socket.destroy();
    else if (this.#mode === "pause") socket.pause();
    else socket.resume();
  }

  #take({ socket, connection }: Accepted, reader: FrameReader, chunk: Uint8Array): void {
    try {
      for (const frame of reader.push(chunk)) {
        const position = connection.frames.length;
        const received = {
          ...frame,
          at: performance.now(),
          connection: connection.number,
          position,
        };
        connection.frames.push(received);
        this.#frames.push(received);
        this.#record(`<- ${describeFrame(frame)}`);
      }
    } catch (error) {
      if (!(error instanceof FramingError)) throw error;
      connection.violation = error.message;
      this.#record(`connection ${connection.number}: ${error.message}`);
      socket.destroy();
    }
  }

  #record(line: string): void {
    this.#options.record(`${this.#options.label} ${line}`);
  }
}

/** A (queue, partition) that a frame of type 1, 2 or 5 named. */
export interface SeenHint {
  /** The queue's name. */
  readonly queue: unknown;
  /** The partition's name. */
  readonly partition: unknown;
  /** The tenant. */
  readonly tenant: unknown;
  /** The consumer group of a dirty hint. */
  readonly group?: unknown;
  /** The frame that carried it. */
  readonly frame: ReceivedFrame;
}

/** The wakes (types 1 and 2) of these frames, one for each item. */
export function wakesOf(frames: readonly ReceivedFrame[]): SeenHint[] {
  return frames.flatMap((frame) =>
    frame.type === FRAME_TYPES.MESSAGE_AVAILABLE
      ? [itemOf(frame, frame.json)]
      : frame.type === FRAME_TYPES.MESSAGE_AVAILABLE_BATCH
      ? itemsOf(frame)
      : []
  );
}

/** The dirty hints (type 5) of these frames, one for each item. */
export function dirtyHintsOf(frames: readonly ReceivedFrame[]): SeenHint[] {
  return frames.flatMap((frame) =>
    frame.type === FRAME_TYPES.HOTLIST_DIRTY_BATCH ? itemsOf(frame) : []
  );
}

function itemsOf(frame: ReceivedFrame): SeenHint[] {
  const items = (frame.json as { items?: unknown } | null | undefined)?.items;
  return Array.isArray(items) ? items.map((item) => itemOf(frame, item)) : [];
}

function itemOf(frame: ReceivedFrame, item: unknown): SeenHint {
  const { queue, partition, tenant, group } = (item ?? {}) as Record<string, unknown>;
  return { queue, partition, tenant, ...(group === undefined ? {} : { group }), frame };
}
