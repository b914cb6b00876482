import { type HelloVerdict, type Mac, verifyHello } from "../protocol/hello.ts";
import type { Frame } from "../protocol/frame.ts";

/** How many nonces are remembered, the oldest forgotten first. */
const NONCES_MAX = 16_384;

/** A peer's nonce has 32 characters; one longer than this is not remembered and so not let in. */
const NONCE_LENGTH_MAX = 256;

/** What a {@linkcode Handshake} found out about a first frame. */
export type HandshakeVerdict =
  /** A peer. */
  | { readonly kind: "accepted"; readonly serverId: string }
  /** This node's own latest HELLO to that peer: it has met itself, or somebody has captured it. */
  | { readonly kind: "self"; readonly peer: number }
  /** Nobody that may come in; counts as a handshake failure (HSK-4). */
  | { readonly kind: "refused"; readonly reason: string };

/** What a {@linkcode Handshake} rests on. */
export interface HandshakeOptions {
  /** Verifies the HELLO; undefined in open mode. */
  readonly mac: Mac | undefined;
}

/**
 * Judges the first frame of each accepted connection, and remembers nonces: its own, to know itself
 * and not to be let in by itself, and, with a secret, those that it has accepted, so that a captured
 * HELLO is not let in twice.
 */
export class Handshake {
  readonly #mac: Mac | undefined;
  readonly #known = new Set<string>();
  /** One for each peer, the latest. */
  readonly #own = new Map<number, string>();

  /** Has met nobody yet. */
  constructor(options: HandshakeOptions) {
    this.#mac = options.mac;
  }

  /** This node is about to say HELLO with `nonce` to the peer of that number. */
  noteOwn(peer: number, nonce: string): void {
    // Once there is a newer one, whoever says it to this node is no peer.
    this.#remember(nonce);
    this.#own.set(peer, nonce);
  }

  /** Judges a first frame. Never rejects on account of what the frame holds. */
  async judge(frame: Frame): Promise<HandshakeVerdict> {
    const verdict: HelloVerdict = await verifyHello(frame, this.#mac);
    if (!verdict.ok) return { kind: "refused", reason: verdict.reason };
    const { nonce, serverId } = verdict;
    if (nonce === undefined) return { kind: "accepted", serverId };
    const peer = this.#ownPeer(nonce);
    if (peer !== undefined) return { kind: "self", peer };
    // In open mode a peer may say any nonce, as often as it likes.
    if (this.#mac === undefined && !this.#known.has(nonce)) return { kind: "accepted", serverId };
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
      if (own === nonce) return peer;
    }
    return undefined;
  }

  #remember(nonce: string): boolean {
    if (this.#known.has(nonce)) return false;
    if (this.#known.size === NONCES_MAX) {
      for (const oldest of this.#known) {
        this.#known.delete(oldest);
        break;
      }
    }
    this.#known.add(nonce);
    return true;
  }
}
