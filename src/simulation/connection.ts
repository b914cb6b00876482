/**
 * The two ends of a simulated TCP connection.
 *
 * @module
 */

import type { Connection, Endpoint } from "../mesh/runtime.ts";
import type { Packet, PacketReceiver, Pipe } from "./link.ts";
import type { SimulatedHost } from "./host.ts";
import { networkError } from "./network_error.ts";
import type { SimulatedProcess } from "./process.ts";

/** What an end is doing. */
export type EndState =
  /** Dialled, and not answered yet; or to be accepted, and not asked for yet. */
  | "opening"
  /** In use. */
  | "open"
  /** Broken by the network or by the other end, and not closed by its owner yet. */
  | "broken"
  /** Closed by its owner, or by the death of its owner. */
  | "closed"
  /** Gone without a word, with its owner. */
  | "vanished";

/** A read or a write that waits. */
interface Pending<T> {
  readonly bytes: Uint8Array;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** How an end begins. */
export interface EndOptions {
  /** The number that both ends of a connection share. */
  readonly id: number;
  /** Which of the two this is. */
  readonly side: "dialled" | "accepted";
  /** The host on which it is. */
  readonly host: SimulatedHost;
  /** The process that opened it, where that is known yet. */
  readonly owner: SimulatedProcess | null;
  /** The address of the other end. */
  readonly remote: Endpoint;
  /** How many bytes the kernels hold that were written here and not read over there. */
  readonly capacityBytes: number;
}

/** One end of a simulated TCP connection. */
export class SimulatedConnection implements Connection, PacketReceiver {
  /** The number that both ends share; connections are numbered from 1 in the order of dialling. */
  readonly id: number;
  /** Which end this is. */
  readonly side: "dialled" | "accepted";
  /** The host on which this end is. */
  readonly host: SimulatedHost;
  readonly remote: Endpoint;
  /** How many bytes the kernels hold that were written here and not read over there. */
  readonly capacityBytes: number;
  /** How many bytes the kernel has taken here. */
  takenBytes = 0;
  /** How many bytes were read here. */
  readBytes = 0;
  /** When the pending write began to wait, or the last one that had to wait was taken. */
  waitedAt = 0;

  #owner: SimulatedProcess | null;
  #state: EndState = "opening";
  #peer: SimulatedConnection | null = null;
  #out: Pipe | null = null;
  readonly #received: Uint8Array[] = [];
  #ended = false;
  #error: Error | null = null;
  #owesReset = false;
  #reader: Pending<number | null> | null = null;
  #writer: Pending<number> | null = null;
  #onAnswer: ((error: Error | null) => void) | null = null;

  /** Makes an end that is not wired up yet: see {@linkcode SimulatedConnection.wire}. */
  constructor(options: EndOptions) {
    this.id = options.id;
    this.side = options.side;
    this.host = options.host;
    this.#owner = options.owner;
    this.remote = options.remote;
    this.capacityBytes = options.capacityBytes;
  }

  /** The process that opened this end; null until a listener has granted it. */
  get owner(): SimulatedProcess | null {
    return this.#owner;
  }

  /** What this end is doing. */
  get state(): EndState {
    return this.#state;
  }

  /** The other end. */
  get peer(): SimulatedConnection {
    return this.#peer!;
  }

  /** Whether a write waits for room. */
  get isWriteBlocked(): boolean {
    return this.#writer !== null;
  }

  /** How the trace names this end: `a>b#7` for the one that a dialled, `b<a#7` for the other. */
  get label(): string {
    const direction = this.side === "dialled" ? ">" : "<";
    return `${this.host.name}${direction}${this.peer.host.name}#${this.id}`;
  }

  /** Joins this end to the other one by the direction that leads there. */
  wire(peer: SimulatedConnection, out: Pipe): void {
    this.#peer = peer;
    this.#out = out;
  }

  /** Asks for the connection and hands the answer to `onAnswer`. */
  open(onAnswer: (error: Error | null) => void): void {
    this.#onAnswer = onAnswer;
    this.#out!.send({ kind: "open" });
  }

  /** Answers the other end's request: grants it on behalf of `owner`, or refuses it. */
  answer(owner: SimulatedProcess | null): void {
    this.#owner = owner;
    owner?.adopt(this);
    this.#state = owner === null ? "closed" : "open";
    this.#out!.send({ kind: owner === null ? "refused" : "accepted" });
  }

  read(buffer: Uint8Array): Promise<number | null> {
    const { network } = this.host;
    if (this.#reader !== null) network.blame(`${this.label}: a second read while one is pending`);
    if (buffer.length === 0) network.blame(`${this.label}: a read into an empty buffer`);
    if (this.#state === "closed") return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#reader = { bytes: buffer, resolve, reject };
      this.serveReader();
    });
  }

  write(bytes: Uint8Array): Promise<number> {
    const { network } = this.host;
    if (this.#writer !== null) network.blame(`${this.label}: a second write while one is pending`);
    if (bytes.length === 0) network.blame(`${this.label}: a write of no bytes`);
    if (this.#state === "closed") return Promise.reject(networkError("EPIPE", "closed here"));
    if (this.#state === "broken") return Promise.reject(this.#error!);
    return new Promise((resolve, reject) => {
      this.#writer = { bytes, resolve, reject };
      this.#serveWriter();
      if (this.#writer !== null) this.waitedAt = network.clock.now();
    });
  }

  close(): void {
    if (this.#state === "closed" || this.#state === "vanished") return;
    const wasOpen = this.#state === "open" || this.#isGrantUnderWay();
    const hadUnread = this.#received.length > 0;
    this.#state = "closed";
    this.host.network.observer.closed?.(this);
    // As Linux does: what nobody will read turns an orderly end into a reset.
    if (wasOpen) this.#out!.send({ kind: hadUnread ? "reset" : "end" });
    this.#received.length = 0;
    const reader = this.#reader;
    const writer = this.#writer;
    const onAnswer = this.#onAnswer;
    this.#reader = this.#writer = this.#onAnswer = null;
    reader?.resolve(null);
    writer?.reject(networkError("EPIPE", "closed here"));
    onAnswer?.(networkError("ECONNABORTED", "closed here"));
    this.#owner?.forget(this);
    this.#disposeIfOver();
  }

  /**
   * Ends with the owner's death. Nothing that the owner waits for is ever answered.
   *
   * @param how What the kernel does: it resets, ends in order, or is gone as well.
   */
  die(how: "reset" | "end" | "vanish"): void {
    this.#reader = this.#writer = this.#onAnswer = null;
    const wasOpen = this.#state === "open" || this.#isGrantUnderWay();
    const hadUnread = this.#received.length > 0;
    this.#received.length = 0;
    if (how === "vanish") {
      this.#state = "vanished";
      this.#out!.lose();
      this.#disposeIfOver();
      return;
    }
    this.#state = "closed";
    if (how === "reset") this.#out!.lose();
    if (wasOpen) this.#out!.send({ kind: how === "reset" || hadUnread ? "reset" : "end" });
    this.#disposeIfOver();
  }

  /** Breaks this end at once, as a kernel does that has given up on the other side. */
  break(code: string): void {
    this.#error = networkError(code, "connection broke");
    if (this.#state === "opening" && this.#onAnswer !== null) this.#fail(this.#error);
    if (this.#state !== "open") return;
    this.#state = "broken";
    const reader = this.#reader;
    const writer = this.#writer;
    this.#writer = null;
    writer?.reject(this.#error);
    if (reader !== null) this.serveReader();
  }

  /** Answers what arrived while the host was off, now that it knows nothing of the connection. */
  wake(): void {
    if (this.#owesReset || this.peer.isWriteBlocked) this.#out!.send({ kind: "reset" });
    this.#owesReset = false;
  }

  /** Sends a packet as if it came from this end: for faults of the network itself. */
  inject(packet: Packet, isLossy: boolean): void {
    if (isLossy) this.#out!.lose();
    this.#out!.send(packet);
  }

  receive(packet: Packet): void {
    switch (packet.kind) {
      case "open":
        this.host.receiveOpen(this);
        return;
      case "accepted":
      case "refused":
        this.#receiveAnswer(packet.kind === "accepted");
        return;
      case "data":
        if (this.#state !== "open") return this.#refuse();
        if (this.#ended) return;
        this.#received.push(packet.bytes);
        this.serveReader();
        return;
      case "window":
        if (this.#writer === null) return;
        this.#serveWriter();
        if (this.#writer === null) this.waitedAt = this.host.network.clock.now();
        return;
      case "end":
        if (this.#state === "vanished") return this.#refuse();
        this.#ended = true;
        this.serveReader();
        return;
      case "reset":
        this.break("ECONNRESET");
        return;
    }
  }

  /** Hands what has arrived to a pending read, unless reads are stalled. */
  serveReader(): void {
    const reader = this.#reader;
    if (reader === null || this.#owner?.isStalled === true) return;
    if (this.#received.length > 0) {
      const count = this.#takeReceived(reader.bytes);
      this.#reader = null;
      this.readBytes += count;
      this.host.network.observer.read?.(this, reader.bytes.subarray(0, count));
      if (this.peer.isWriteBlocked) this.#out!.send({ kind: "window" });
      reader.resolve(count);
    } else if (this.#state === "broken") {
      this.#reader = null;
      reader.reject(this.#error!);
    } else if (this.#ended) {
      this.#reader = null;
      reader.resolve(null);
    }
  }

  #takeReceived(buffer: Uint8Array): number {
    let count = 0;
    while (this.#received.length > 0 && count < buffer.length) {
      const first = this.#received[0]!;
      const part = first.subarray(0, buffer.length - count);
      buffer.set(part, count);
      count += part.length;
      if (part.length === first.length) this.#received.shift();
      else this.#received[0] = first.subarray(part.length);
    }
    return count;
  }

  #serveWriter(): void {
    const writer = this.#writer;
    if (writer === null || this.#state !== "open") return;
    const room = this.capacityBytes - (this.takenBytes - this.peer.readBytes);
    if (room <= 0) return;
    const { network } = this.host;
    const count = network.drawTaken(Math.min(room, writer.bytes.length));
    this.#writer = null;
    this.takenBytes += count;
    const taken = writer.bytes.slice(0, count);
    network.observer.taken?.(this, taken);
    for (const bytes of network.drawSegments(taken)) this.#out!.send({ kind: "data", bytes });
    writer.resolve(count);
  }

  #receiveAnswer(isGranted: boolean): void {
    const onAnswer = this.#onAnswer;
    // Nobody waits any more: the request was given up, or its owner died.
    if (onAnswer === null) return;
    if (!isGranted) return this.#fail(networkError("ECONNREFUSED", "connection refused"));
    this.#onAnswer = null;
    this.#state = "open";
    onAnswer(null);
  }

  /** Ends an attempt to open a connection. */
  #fail(error: Error): void {
    const onAnswer = this.#onAnswer;
    this.#onAnswer = null;
    this.#state = "closed";
    this.#owner?.forget(this);
    this.#disposeIfOver();
    onAnswer?.(error);
  }

  /** Whether this end waits for an answer that the other one has given already. */
  #isGrantUnderWay(): boolean {
    return this.#state === "opening" && this.side === "dialled" && this.peer.#state === "open";
  }

  /** Tells the other end that there is no such connection here. */
  #refuse(): void {
    if (this.#state === "vanished" && !this.host.isUp) this.#owesReset = true;
    else if (this.#state === "closed" || this.#state === "vanished") {
      this.#out!.send({ kind: "reset" });
    }
  }

  /** Frees the directions once neither end can use them. */
  #disposeIfOver(): void {
    const isOver = (end: SimulatedConnection) =>
      end.#state === "closed" || end.#state === "vanished" ||
      (end.side === "accepted" && end.#state === "opening");
    if (!isOver(this) || !isOver(this.peer)) return;
    this.#out!.dispose();
    this.peer.#out!.dispose();
    this.host.network.forget(this);
  }
}
