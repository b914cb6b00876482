/**
 * The way from one simulated host to another, and what travels on it.
 *
 * @module
 */

import type { Prng } from "./prng.ts";
import type { VirtualClock } from "./virtual_clock.ts";

/** What one end of a connection sends to the other. */
export type Packet =
  /** Asks for a connection. */
  | { readonly kind: "open" }
  /** Grants it. */
  | { readonly kind: "accepted" }
  /** Refuses it. */
  | { readonly kind: "refused" }
  /** Carries bytes, at least one. */
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  /** Says that room has been made for a sender that waits for it. */
  | { readonly kind: "window" }
  /** Ends the stream in order. */
  | { readonly kind: "end" }
  /** Breaks the connection. */
  | { readonly kind: "reset" };

/** Where packets arrive. */
export interface PacketReceiver {
  /** Takes a packet that has just arrived. */
  receive(packet: Packet): void;
}

/** The way from one host to another; the way back is a link of its own. */
export class Link {
  /** The shortest time that a packet travels. */
  delayMsMin: number;
  /** The longest time that a packet travels. */
  delayMsMax: number;
  readonly #prng: Prng;
  readonly #pipes = new Set<Pipe>();
  #isCut = false;

  /** Makes a link whose packets travel for `delayMs`, from the shortest time to the longest. */
  constructor(prng: Prng, delayMs: readonly [min: number, max: number]) {
    this.#prng = prng;
    [this.delayMsMin, this.delayMsMax] = delayMs;
  }

  /** Whether packets are held. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Counts `pipe` among those that a cut holds. */
  attach(pipe: Pipe): void {
    this.#pipes.add(pipe);
  }

  /** Forgets `pipe`. */
  detach(pipe: Pipe): void {
    this.#pipes.delete(pipe);
  }

  /** Holds every packet from now on, those on their way included. */
  cut(): void {
    this.#isCut = true;
    for (const pipe of this.#pipes) pipe.hold();
  }

  /** Sends what was held on its way again. */
  heal(): void {
    if (!this.#isCut) return;
    this.#isCut = false;
    for (const pipe of this.#pipes) pipe.release();
  }

  /** How long the next packet travels, in milliseconds. */
  drawDelay(): number {
    if (this.delayMsMin === this.delayMsMax) return this.delayMsMin;
    return this.#prng.integer(this.delayMsMin, this.delayMsMax);
  }
}

/** A packet on its way. */
interface InFlight {
  readonly packet: Packet;
  arrivesAt: number;
}

/** One direction of one connection: packets arrive in the order in which they were sent. */
export class Pipe {
  readonly #clock: VirtualClock;
  readonly #link: Link;
  readonly #receiver: PacketReceiver;
  readonly #inFlight: InFlight[] = [];
  #timer: { cancel(): void } | null = null;

  /** Makes a direction over `link` that ends at `receiver`. */
  constructor(clock: VirtualClock, link: Link, receiver: PacketReceiver) {
    this.#clock = clock;
    this.#link = link;
    this.#receiver = receiver;
    link.attach(this);
  }

  /** Sends a packet on its way. */
  send(packet: Packet): void {
    const earliest = this.#inFlight.at(-1)?.arrivesAt ?? 0;
    const arrivesAt = Math.max(earliest, this.#clock.now() + this.#link.drawDelay());
    this.#inFlight.push({ packet, arrivesAt });
    if (this.#timer === null) this.#arm();
  }

  /** Loses all that is on its way. */
  lose(): void {
    this.#inFlight.length = 0;
    this.hold();
  }

  /** Loses all that is on its way and is never used again. */
  dispose(): void {
    this.lose();
    this.#link.detach(this);
  }

  /** Stops arrivals: {@linkcode Link.cut} does this. */
  hold(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** Takes arrivals up again: {@linkcode Link.heal} does this. */
  release(): void {
    let earliest = 0;
    for (const held of this.#inFlight) {
      const again = this.#clock.now() + this.#link.drawDelay();
      earliest = held.arrivesAt = Math.max(earliest, held.arrivesAt, again);
    }
    this.#arm();
  }

  #arm(): void {
    const first = this.#inFlight[0];
    if (first === undefined || this.#link.isCut) return;
    this.#timer = this.#clock.setTimerAt(first.arrivesAt, this.#arrive);
  }

  readonly #arrive = (): void => {
    this.#timer = null;
    const now = this.#clock.now();
    while (this.#inFlight.length > 0 && this.#inFlight[0]!.arrivesAt <= now) {
      this.#receiver.receive(this.#inFlight.shift()!.packet);
    }
    if (this.#timer === null) this.#arm();
  };
}
