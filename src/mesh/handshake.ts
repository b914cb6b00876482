import { type HelloVerdict, type Mac, verifyHello } from "../protocol/hello.ts";
import type { Frame } from "../protocol/frame.ts";
import type { Clock } from "./runtime.ts";

/** An own nonce met later than this after its HELLO was written, in milliseconds, is a replay. */
const OWN_NONCE_MS_MAX = 10_000;

/** How many accepted nonces are remembered, the oldest forgotten first. */
const NONCES_MAX = 16_384;

/** A peer's nonce has 32 characters; one longer than this is not remembered and so not let in. */
const NONCE_LENGTH_MAX = 256;

/** What a {@linkcode Handshake} found out about a first frame. */
export type HandshakeVerdict =
  /** A peer. */
  | { readonly kind: "accepted"; readonly serverId: string }
  /** This node itself, by the peer that it dialled. */
  | { readonly kind: "self"; readonly peer: number }
  /** Nobody that may come in; counts as a handshake failure (HSK-4). */
  | { readonly kind: "refused"; readonly reason: string };

/** What a {@linkcode Handshake} rests on. */
export interface HandshakeOptions {
  /** Verifies the HELLO; undefined in open mode. */
  readonly mac: Mac | undefined;
  /** Time. */
  readonly clock: Clock;
}

/**
 * Judges the first frame of each accepted connection, and remembers nonces: its own, to know itself,
 * and, with a secret, those that it has accepted and its own as well, so that a captured HELLO is not
 * let in twice and not let in by the node that said it.
 */
export class Handshake {
  readonly #mac: Mac | undefined;
  readonly #clock: Clock;
  readonly #accepted = new Set<string>();
  /** One for each peer, the latest. */
  readonly #own = new Map<number, { nonce: string; ms: number }>();

  /** Has met nobody yet. */
  constructor(options: HandshakeOptions) {
    this.#mac = options.mac;
    this.#clock = options.clock;
  }

  /** This node is about to say HELLO with `nonce` to the peer of that number. */
  noteOwn(peer: number, nonce: string): void {
    // Whoever says it to this node later on has captured it.
    if (this.#mac !== undefined) this.#remember(nonce);
    this.#own.set(peer, { nonce, ms: this.#clock.now() });
  }

  /** Judges a first frame. Never rejects on account of what the frame holds. */
  async judge(frame: Frame): Promise<HandshakeVerdict> {
    const verdict: HelloVerdict = await verifyHello(frame, this.#mac);
    if (!verdict.ok) return { kind: "refused", reason: verdict.reason };
    const { nonce, serverId } = verdict;
    if (nonce === undefined) return { kind: "accepted", serverId };
    const peer = this.#ownPeer(nonce);
    if (peer !== undefined) return { kind: "self", peer };
    if (this.#mac === undefined) return { kind: "accepted", serverId };
    if (nonce.length > NONCE_LENGTH_MAX) {
      return { kind: "refused", reason: `a nonce of ${nonce.length} characters` };
    }
    if (!this.#remember(nonce)) {
      return { kind: "refused", reason: "the nonce was accepted or said before: a replay" };
    }
    return { kind: "accepted", serverId };
  }

  #ownPeer(nonce: string): number | undefined {
    for (const [peer, own] of this.#own) {
      if (own.nonce === nonce && this.#clock.now() - own.ms <= OWN_NONCE_MS_MAX) return peer;
    }
    return undefined;
  }

  #remember(nonce: string): boolean {
    if (this.#accepted.has(nonce)) return false;
    if (this.#accepted.size === NONCES_MAX) {
      for (const oldest of this.#accepted) {
        this.#accepted.delete(oldest);
        break;
      }
    }
    this.#accepted.add(nonce);
    return true;
  }
}
