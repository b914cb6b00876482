/**
 * Watches one node's sending side towards one peer.
 *
 * @module
 */

import { BACKOFF_MS_MAX, BACKOFF_MS_MIN } from "../mesh/backoff.ts";
import type { PeerStats } from "../mesh/peer_stats.ts";
import type { SendQueue } from "../mesh/send_queue.ts";
import type { SimulatedConnection } from "./connection.ts";
import type { NodeSettings } from "./node_settings.ts";
import type { Report } from "./violation.ts";
import {
  readHello,
  textsOfFrame,
  TYPE,
  type WireFrame,
  type WireHello,
  WireReader,
} from "./wire.ts";

/** A dial that has no answer is given up after this many milliseconds. */
const DIAL_MS_MAX = 5000;

/** How late a timer may be, in virtual milliseconds: sums of fractions round. */
const ROUNDING_MS = 0.001;

/** What the node was asked to send, the same for all of its peers. */
export interface Asked {
  /** A text for each item, in the order of asking. */
  readonly texts: string[];
  /** How many frames. */
  frames: number;
  /** How many of them shared another one's frame. */
  coalesced: number;
}

/** What an {@linkcode OutboundWatch} watches. */
export interface OutboundWatchOptions {
  /** The node's name. */
  readonly node: string;
  /** The peer's name. */
  readonly peer: string;
  /** How the node ought to behave. */
  readonly settings: NodeSettings;
  /** What the node was asked to send. */
  readonly asked: Asked;
  /** The time. */
  readonly now: () => number;
  /** Told of each HELLO once the kernel has taken it whole. */
  readonly onHello: (hello: WireHello, frame: WireFrame) => void;
  /** Takes what went wrong. */
  readonly report: Report;
}

/** The connection in use. */
interface Session {
  readonly connection: SimulatedConnection;
  readonly reader: WireReader;
  /** How much had been asked for when it opened. */
  readonly openedWith: number;
  /** Where in what was asked the next item can be at the earliest. */
  cursor: number;
  /** When the kernel had taken the HELLO whole; null before. */
  greetedAt: number | null;
  /** When the kernel last took a heartbeat whole. */
  heartbeatAt: number;
}

/** Watches dialling, redialling, the stream of bytes, the queue's bounds and the figures. */
export class OutboundWatch {
  /** The peer's name. */
  readonly peer: string;
  readonly #options: OutboundWatchOptions;
  #session: Session | null = null;
  #attemptBegan = 0;
  #attemptAt: number | null = null;
  #endedAt: number | null = null;
  #failures = 0;
  #sent = 0;
  #heartbeatsAsked = 0;
  #queuedFrames = 0;
  #queuedBytes = 0;

  /** Has seen nothing yet. */
  constructor(options: OutboundWatchOptions) {
    this.#options = options;
    this.peer = options.peer;
  }

  /** Watches the queue that the node keeps for this peer. */
  watchQueue(queue: SendQueue): SendQueue {
    const push = queue.push.bind(queue);
    const clear = queue.clear.bind(queue);
    queue.push = (frame) => {
      if (frame[4] === TYPE.heartbeat) this.#heartbeatsAsked++;
      const isQueued = push(frame);
      if (isQueued) {
        this.#queuedFrames++;
        this.#queuedBytes += frame.length;
        this.#checkBounds();
      }
      return isQueued;
    };
    queue.clear = () => {
      this.#queuedFrames = this.#queuedBytes = 0;
      return clear();
    };
    return queue;
  }

  /** The node looks the peer's name up: an attempt begins. */
  attempt(): void {
    const now = this.#options.now();
    this.#attemptAt = this.#attemptBegan = now;
    if (this.#endedAt === null) return;
    const waited = now - this.#endedAt;
    const base = this.#backoffMs();
    this.#failures++;
    // Jittered by a fifth at most (TOP-4).
    const isInTime = waited >= base * 0.8 - ROUNDING_MS && waited <= base * 1.2 + ROUNDING_MS;
    if (!isInTime) {
      this.#blame("redial", `redialled after ${waited} ms, the backoff stands at ${base} ms`);
    }
    this.#endedAt = null;
  }

  /** An attempt, or a part of it, has failed. */
  failed(): void {
    this.#endedAt = this.#options.now();
    this.#attemptAt = null;
  }

  /** The node connects to an address: the first one, or another one after that has failed. */
  dialling(): void {
    this.#attemptAt = this.#attemptBegan;
    this.#endedAt = null;
  }

  /** The attempt has succeeded. */
  opened(connection: SimulatedConnection): void {
    if (this.#session !== null) this.#blame("redial", "connected twice at once");
    this.#attemptAt = null;
    this.#endedAt = null;
    const openedWith = this.#options.asked.texts.length;
    this.#session = {
      connection,
      reader: new WireReader(),
      openedWith,
      cursor: openedWith,
      greetedAt: null,
      heartbeatAt: this.#options.now(),
    };
  }

  /** The kernel has taken bytes. */
  taken(connection: SimulatedConnection, bytes: Uint8Array): void {
    const session = this.#session;
    if (session?.connection !== connection) return;
    for (const frame of session.reader.push(bytes)) {
      if (session.greetedAt === null) this.#takeHello(session, frame);
      else this.#takeFrame(session, frame);
    }
    if (session.greetedAt !== null && this.#queuedBytes > 0) {
      this.#queuedBytes = Math.max(0, this.#queuedBytes - bytes.length);
    }
    if (session.reader.isBroken) this.#blame("wire", "wrote a length that no frame has");
  }

  /** The node has closed a dialled connection. */
  closed(connection: SimulatedConnection): void {
    const session = this.#session;
    if (session?.connection !== connection) return;
    const now = this.#options.now();
    this.#session = null;
    this.#endedAt = now;
    // Only a connection that lasted has proved itself.
    if (session.greetedAt !== null && now - session.greetedAt > BACKOFF_MS_MAX) this.#failures = 0;
  }

  /** Whether a connection stands, by the network's knowledge. */
  get isGreeted(): boolean {
    return this.#session !== null && this.#session.greetedAt !== null;
  }

  /** Checks what must hold while all is at rest. */
  check(stats: PeerStats): void {
    this.#checkFigures(stats);
    this.#checkTimes();
    this.#checkBounds();
  }

  #takeHello(session: Session, frame: WireFrame): void {
    const { settings, now, onHello } = this.#options;
    session.greetedAt = session.heartbeatAt = now();
    const hello = readHello(frame, settings.secret);
    if (hello?.serverId === settings.serverId) onHello(hello, frame);
    else this.#blame("wire", "wrote something else than its HELLO first");
  }

  #takeFrame(session: Session, frame: WireFrame): void {
    this.#sent++;
    this.#queuedFrames--;
    if (frame.type === TYPE.heartbeat) {
      session.heartbeatAt = this.#options.now();
      return;
    }
    const texts = textsOfFrame(frame);
    if (texts.length === 0) this.#blame("wire", `wrote an unusable frame of type ${frame.type}`);
    const { asked } = this.#options;
    for (const text of texts) {
      const index = asked.texts.indexOf(text, session.cursor);
      if (index >= 0) {
        session.cursor = index + 1;
        continue;
      }
      const { label } = session.connection;
      const before = asked.texts.lastIndexOf(text);
      if (before < 0) {
        this.#blame("forwarded", `${label} carried what was never asked for: ${text}`);
      } else if (before < session.openedWith) {
        this.#blame("stale", `${label} carried what was asked for before it: ${text}`);
      } else this.#blame("order", `${label} carried out of order: ${text}`);
      return;
    }
  }

  #checkBounds(): void {
    const { framesMax, bytesMax } = this.#options.settings;
    if (this.#queuedFrames > framesMax) {
      this.#blame("bounds", `${this.#queuedFrames} frames queued`);
    }
    if (this.#queuedBytes > bytesMax) this.#blame("bounds", `${this.#queuedBytes} bytes queued`);
  }

  #checkFigures(stats: PeerStats): void {
    const { asked } = this.#options;
    const total = asked.frames + this.#heartbeatsAsked;
    const sum = stats.messages_sent + stats.messages_dropped + stats.messages_coalesced +
      stats.queued;
    const figures = `sent ${stats.messages_sent}, dropped ${stats.messages_dropped}, ` +
      `coalesced ${stats.messages_coalesced}, queued ${stats.queued}`;
    if (sum !== total) this.#blame("accounting", `asked ${total}, but ${figures}`);
    if (stats.messages_asked !== total) {
      this.#blame("accounting", `asked ${total}, but says ${stats.messages_asked}`);
    }
    if (stats.messages_sent !== this.#sent) {
      this.#blame("accounting", `the kernel took ${this.#sent} frames, but ${figures}`);
    }
    if (stats.messages_coalesced !== asked.coalesced) {
      this.#blame("accounting", `${asked.coalesced} shared a frame, but ${figures}`);
    }
    if (stats.queued > this.#options.settings.framesMax) {
      this.#blame("bounds", `says that ${stats.queued} frames are queued`);
    }
    if (stats.connected !== this.isGreeted) {
      this.#blame("accounting", `says connected ${stats.connected}, is ${this.isGreeted}`);
    }
  }

  #checkTimes(): void {
    const { now, settings } = this.#options;
    if (this.#attemptAt !== null && now() - this.#attemptAt > DIAL_MS_MAX + ROUNDING_MS) {
      this.#blame("redial", `a dial lasts since ${this.#attemptAt} ms`);
    }
    if (this.#endedAt !== null && now() - this.#endedAt > this.#backoffMs() * 1.2 + ROUNDING_MS) {
      this.#blame("redial", `not redialled since ${this.#endedAt} ms`);
    }
    if (this.#session === null) return;
    const { connection, greetedAt, heartbeatAt } = this.#session;
    if (connection.isWriteBlocked) {
      if (now() - connection.waitedAt > settings.deadThresholdMs + ROUNDING_MS) {
        this.#blame("stall", `${connection.label} waits since ${connection.waitedAt} ms`);
      }
    } else if (greetedAt !== null) {
      const since = Math.max(heartbeatAt, connection.waitedAt);
      if (now() - since > settings.heartbeatMs + ROUNDING_MS) {
        this.#blame("heartbeat", `${connection.label} has had none since ${since} ms`);
      }
    }
  }

  #backoffMs(): number {
    return Math.min(BACKOFF_MS_MIN * 2 ** this.#failures, BACKOFF_MS_MAX);
  }

  #blame(rule: Parameters<Report>[0], text: string): void {
    this.#options.report(rule, `${this.#options.node} to ${this.peer}: ${text}`);
  }
}
