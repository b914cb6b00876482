/**
 * Watches one node's receiving side.
 *
 * @module
 */

import type { Message } from "../protocol/messages.ts";
import type { EnabledStats } from "../mesh/stats.ts";
import type { SimulatedConnection } from "./connection.ts";
import { Effects } from "./effects.ts";
import type { NodeSettings } from "./node_settings.ts";
import type { Report } from "./violation.ts";
import {
  readHello,
  textsOfFrame,
  textsOfMessage,
  TYPE,
  type WireHello,
  WireReader,
} from "./wire.ts";

/** A HELLO that is not complete after this many milliseconds is refused. */
const HELLO_MS_MAX = 5000;

/** What an {@linkcode InboundWatch} watches. */
export interface InboundWatchOptions {
  /** The node's name. */
  readonly node: string;
  /** How the node ought to behave. */
  readonly settings: NodeSettings;
  /** The time. */
  readonly now: () => number;
  /** Takes what went wrong. */
  readonly report: Report;
}

/** One accepted connection, as the bytes that were read from it tell. */
interface Guest {
  readonly connection: SimulatedConnection;
  readonly reader: WireReader;
  readonly acceptedAt: number;
  standing: "stranger" | "peer" | "refused";
  serverId: string;
  /** What was read and has not been dispatched, a text for each frame, oldest first. */
  readonly due: string[];
}

/** Watches handshakes, dispatching and liveness. */
export class InboundWatch {
  readonly #options: InboundWatchOptions;
  readonly #guests = new Map<SimulatedConnection, Guest>();
  readonly #nonces = new Set<string>();
  readonly #heardAt = new Map<string, number>();
  readonly #effects = new Effects();
  readonly #dispatched = new Set<string>();
  #received = 0;
  /** Frames that were read on connections which the node closed before it came to them. */
  #unsure = 0;

  /** Has seen nothing yet. */
  constructor(options: InboundWatchOptions) {
    this.#options = options;
  }

  /** The node has said HELLO with a nonce, which nobody else may say to it. */
  noteOwn(nonce: string): void {
    this.#nonces.add(nonce);
  }

  /** The node has accepted a connection. */
  accepted(connection: SimulatedConnection): void {
    this.#guests.set(connection, {
      connection,
      reader: new WireReader(),
      acceptedAt: this.#options.now(),
      standing: "stranger",
      serverId: "",
      due: [],
    });
  }

  /** The node has read bytes. */
  read(connection: SimulatedConnection, bytes: Uint8Array): void {
    const guest = this.#guests.get(connection);
    if (guest === undefined || guest.standing === "refused") return;
    for (const frame of guest.reader.push(bytes)) {
      if (guest.standing === "stranger") {
        // Nothing after a refused HELLO counts (HSK-5).
        if (!this.#admits(guest, readHello(frame, this.#options.settings.secret))) return;
        continue;
      }
      this.#received++;
      this.#heardAt.set(guest.serverId, this.#options.now());
      if (frame.type === TYPE.heartbeat) continue;
      const texts = textsOfFrame(frame);
      if (texts.length > 0) guest.due.push(texts.join("\n"));
    }
    if (guest.reader.isBroken) guest.standing = "refused";
  }

  /** The node has closed an accepted connection. */
  closed(connection: SimulatedConnection): void {
    const guest = this.#guests.get(connection);
    this.#guests.delete(connection);
    if (guest !== undefined) this.#unsure += guest.due.length;
  }

  /** The node has dispatched a message. */
  dispatched(message: Message, from: string): void {
    const text = textsOfMessage(message).join("\n");
    let isSaid = false;
    for (const guest of this.#guests.values()) {
      if (guest.serverId !== from || guest.standing === "stranger") continue;
      if (guest.due[0] === text) {
        guest.due.shift();
        isSaid = true;
        break;
      }
    }
    if (!isSaid) this.#blame("dispatch", `dispatched out of turn, from ${from}: ${text}`);
    this.#dispatched.add(text);
    this.#effects.apply(message);
    // The handlers of a replica rely on it: a hint that comes twice is a hint that came once.
    const once = this.#effects.toString();
    this.#effects.apply(message);
    if (this.#effects.toString() !== once) {
      this.#blame("idempotence", `applied twice, this changes more than once: ${text}`);
    }
  }

  /** Whether a message of that text has been dispatched. */
  hasDispatched(text: string): boolean {
    return this.#dispatched.has(text);
  }

  /** Checks what must hold while all is at rest. */
  check(stats: EnabledStats): void {
    const now = this.#options.now();
    for (const { connection, standing, due, acceptedAt } of this.#guests.values()) {
      if (standing === "stranger" && now - acceptedAt > HELLO_MS_MAX + 1) {
        this.#blame("handshake", `${connection.label} has not said HELLO and is still open`);
      }
      if (standing === "refused") this.#blame("handshake", `${connection.label} is still open`);
      if (due.length > 0) this.#blame("dispatch", `${connection.label}: not dispatched: ${due[0]}`);
    }
    const received = stats.messages_received;
    if (received > this.#received || received < this.#received - this.#unsure) {
      this.#blame("accounting", `read ${this.#received} frames, says ${received}`);
    }
    this.#checkLiveness(stats);
  }

  #admits(guest: Guest, hello: WireHello | null): boolean {
    const { secret } = this.#options.settings;
    const { connection } = guest;
    const isReplayed = hello !== null && secret !== "" && this.#nonces.has(hello.nonce);
    const isSelf = connection.peer.owner === connection.owner;
    if (hello === null || isReplayed || isSelf) {
      guest.standing = "refused";
      return false;
    }
    guest.standing = "peer";
    guest.serverId = hello.serverId;
    this.#nonces.add(hello.nonce);
    this.#heardAt.set(hello.serverId, this.#options.now());
    return true;
  }

  #checkLiveness(stats: EnabledStats): void {
    if (stats.servers.length !== this.#heardAt.size) {
      this.#blame("liveness", `heard ${this.#heardAt.size} servers, says ${stats.servers.length}`);
    }
    const now = this.#options.now();
    for (const server of stats.servers) {
      const heardAt = this.#heardAt.get(server.server_id);
      const silentMs = heardAt === undefined ? NaN : now - heardAt;
      const isAlive = silentMs <= this.#options.settings.deadThresholdMs;
      if (server.alive !== isAlive || !(Math.abs(server.last_frame_ms_ago - silentMs) <= 1)) {
        this.#blame(
          "liveness",
          `${server.server_id} was silent for ${silentMs} ms, says alive ${server.alive} and ` +
            `${server.last_frame_ms_ago} ms`,
        );
      }
    }
  }

  #blame(rule: Parameters<Report>[0], text: string): void {
    this.#options.report(rule, `${this.#options.node}: ${text}`);
  }
}
