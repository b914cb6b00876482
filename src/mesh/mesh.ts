import { createMac, type Mac } from "../protocol/hello.ts";
import { FrameDecoder } from "../protocol/frame.ts";
import { FrameWriter, type Message, type OutgoingMessage } from "../protocol/messages.ts";
import { Backoff } from "./backoff.ts";
import { completeMeshConfig, type MeshConfig, type MeshSettings } from "./config.ts";
import { Handshake } from "./handshake.ts";
import { HintBatch } from "./hint_batch.ts";
import { Inbound } from "./inbound.ts";
import { Liveness } from "./liveness.ts";
import { OutboundPeer } from "./outbound.ts";
import type { Logger, Runtime } from "./runtime.ts";
import { SendQueue } from "./send_queue.ts";
import { collectStats, type MeshStats } from "./stats.ts";

/** What a {@linkcode Mesh} is made of. */
export interface MeshOptions {
  /** The runtime: `denoRuntime()`, `nodeRuntime()`, or one of your own. */
  readonly runtime: Runtime;
  /** How the node is set up; what is left out has its default. */
  readonly config: MeshSettings;
  /**
   * Applies a message that a peer sent; `from` is the server id that it announced. Called once for
   * each frame, in the order in which the peer sent them, and never once the mesh is being closed.
   * It should return soon: nothing else happens meanwhile. A promise is not waited for. What it
   * throws or rejects with is logged. A message may come twice and may be lost: it is a hint.
   */
  readonly onMessage: (message: Message, from: string) => void;
  /** Where the mesh reports what an operator would want to know; nowhere where it is left out. */
  readonly logger?: Logger;
  /** How a HELLO is signed; by Web Crypto where it is left out. */
  readonly createMac?: (secret: string) => Mac | undefined;
}

/** The parts that a mesh is put together from, for those who want to put another in place of one. */
export interface MeshParts {
  /** Holds what waits for one peer. */
  readonly createQueue: () => SendQueue;
  /** The waits between attempts to reach one peer. */
  readonly createBackoff: (runtime: Runtime) => Backoff;
  /** Takes frames out of one accepted connection. */
  readonly createDecoder: () => FrameDecoder;
  /** Judges first frames. */
  readonly createHandshake: (options: ConstructorParameters<typeof Handshake>[0]) => Handshake;
  /** Keeps who is alive. */
  readonly createLiveness: (options: ConstructorParameters<typeof Liveness>[0]) => Liveness;
}

const PARTS: MeshParts = {
  createQueue: () => new SendQueue(),
  createBackoff: (runtime) => new Backoff(runtime.random),
  createDecoder: () => new FrameDecoder(),
  createHandshake: (options) => new Handshake(options),
  createLiveness: (options) => new Liveness(options),
};

const SILENT: Logger = { info() {}, warn() {}, error() {} };

/**
 * One node of the mesh: it dials every configured peer, listens for theirs, and carries hints both
 * ways (TOP-1, TOP-2). Losing any of them costs latency and nothing else.
 *
 * @example A node that prints what it hears
 * ```ts no-assert
 * import { Mesh } from "@queen/mesh";
 * import { denoRuntime } from "@queen/mesh/deno";
 *
 * const mesh = new Mesh({
 *   runtime: denoRuntime(),
 *   config: {
 *     serverId: "a",
 *     port: 0,
 *     peers: [{ host: "127.0.0.1", port: 6633 }],
 *     secret: "a long random text",
 *   },
 *   onMessage: (message, from) => console.log(from, message),
 * });
 * await mesh.start();
 * mesh.broadcast({ type: "message_available", items: [{ queue: "orders" }] });
 * await mesh.close();
 * ```
 */
export class Mesh implements AsyncDisposable {
  readonly #config: MeshConfig;
  readonly #enabled: boolean;
  readonly #peers: readonly OutboundPeer[];
  readonly #inbound: Inbound;
  readonly #liveness: Liveness;
  readonly #writer = new FrameWriter();
  readonly #hints: HintBatch;
  #starting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  /**
   * Puts the node together; it does nothing before {@linkcode Mesh.start | start}.
   *
   * @throws {TypeError} Where a field of the configuration has the wrong type, or the server id or a
   * host is empty.
   * @throws {RangeError} Where a number of the configuration is out of its bounds.
   */
  constructor(options: MeshOptions, parts: Partial<MeshParts> = {}) {
    const { runtime, logger = SILENT } = options;
    const config = completeMeshConfig(options.config);
    const make = { ...PARTS, ...parts };
    this.#config = config;
    this.#enabled = config.enabled && config.peers.length > 0;
    const mac = (options.createMac ?? createMac)(config.secret);
    const handshake = make.createHandshake({ mac });
    this.#liveness = make.createLiveness({
      clock: runtime.clock,
      logger,
      deadThresholdMs: config.deadThresholdMs,
    });
    let heartbeat: Uint8Array = new Uint8Array();
    this.#writer.heartbeat(config.serverId, (frame) => heartbeat = frame.slice());
    this.#peers = config.peers.map((address, index) =>
      new OutboundPeer({
        address,
        runtime,
        logger,
        serverId: config.serverId,
        mac,
        backoff: make.createBackoff(runtime),
        queue: make.createQueue(),
        heartbeat,
        heartbeatMs: config.heartbeatMs,
        stallMs: config.deadThresholdMs,
        onNonce: (nonce) => handshake.noteOwn(index, nonce),
      })
    );
    this.#inbound = new Inbound({
      runtime,
      logger,
      port: config.port,
      ...(config.hostname === undefined ? {} : { hostname: config.hostname }),
      serverId: config.serverId,
      handshake,
      liveness: this.#liveness,
      createDecoder: make.createDecoder,
      onMessage: options.onMessage,
      onSelf: (peer) => this.#peers[peer]?.meetSelf(),
    });
    this.#hints = new HintBatch((items, calls) => this.#sendHints(items, calls));
  }

  /** The port that the node listens on, or undefined while none is bound. */
  get boundPort(): number | undefined {
    return this.#inbound.boundPort;
  }

  /**
   * Binds the mesh port and begins to dial. A port that cannot be bound is no failure: it is logged
   * and tried again every 5 s. Without peers, or switched off, it does nothing (TOP-7). Starting
   * twice is harmless.
   *
   * @throws {Error} Where the mesh has been closed.
   */
  start(): Promise<void> {
    if (this.#closing !== undefined) throw new Error("a closed mesh cannot be started again");
    return this.#starting ??= this.#start();
  }

  /**
   * Tells every peer. Never waits: what a peer cannot be told now is dropped and counted for it
   * (SND-1, SND-2).
   *
   * `message_available` hints that are asked for in one turn of the event loop leave as one frame,
   * identical ones once.
   *
   * @throws {TypeError} Where a name is no string, or empty where the type needs one, or a tenant is
   * no UUID.
   * @throws {RangeError} Where a single item does not fit into a frame.
   */
  broadcast(message: OutgoingMessage): void {
    if (!this.#enabled) return;
    if (message.type === "message_available") {
      this.#hints.add(message.items);
      return;
    }
    // Frames to one peer keep the order in which they were asked for (SND-4).
    this.#hints.flush();
    this.#writer.encode(message, (frame) => this.#send(frame));
  }

  /** How the node stands (protocol, section 8). */
  stats(): MeshStats {
    return collectStats({
      config: this.#config,
      enabled: this.#enabled,
      peers: this.#peers.filter((peer) => !peer.self).map((peer) => peer.stats()),
      self: this.#config.peers.filter((_, index) => this.#peers[index]?.self),
      inbound: this.#inbound,
      servers: this.#liveness.servers(),
    });
  }

  /** Ends everything; resolves when no timer, socket or task is left. Closing twice is harmless. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  /** The same as {@linkcode Mesh.close | close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #send(frame: Uint8Array): void {
    for (const peer of this.#peers) peer.send(frame);
  }

  /** Writes hints that `calls` calls asked for; those that shared a frame count as coalesced. */
  #sendHints(items: Iterable<string>, calls: number): void {
    const frames = this.#writer.writeHints(items, (frame) => this.#send(frame));
    if (calls <= frames) return;
    for (const peer of this.#peers) peer.countCoalesced(calls - frames);
  }

  async #start(): Promise<void> {
    if (!this.#enabled) return;
    await this.#inbound.start();
    if (this.#closing !== undefined) return;
    for (const peer of this.#peers) peer.start();
  }

  async #close(): Promise<void> {
    await Promise.all([
      this.#starting?.then(() => this.#inbound.close()),
      this.#inbound.close(),
      ...this.#peers.map((peer) => peer.close()),
    ]);
    this.#liveness.close();
  }
}
