import { FRAME_LENGTH_MAX } from "../protocol/frame.ts";
import type { Connection } from "./runtime.ts";

/** Connections without a verified HELLO; beyond it one of them is closed. */
const STRANGERS_MAX = 128;

/** Connections with a verified HELLO, in all; beyond it the oldest is closed. */
const PEERS_MAX = 256;

/** Connections of one server id; beyond it the oldest is closed. */
const CONNECTIONS_PER_SERVER_MAX = 4;

/**
 * The bytes of all receive buffers together; beyond it the largest is closed. Eight peers can be in
 * the middle of the longest frame at a time.
 */
export const BUFFERED_BYTES_MAX: number = 8 * FRAME_LENGTH_MAX;

/** One accepted connection. {@linkcode Guests} alone changes it. */
export interface Guest {
  /** The connection. */
  readonly connection: Connection;
  /** Known once its HELLO is verified. */
  serverId: string | undefined;
  /** How large its receive buffer is. */
  bufferBytes: number;
}

/**
 * The accepted connections, and the bounds on them: how many there are, of whom, and how much memory
 * they take. Whoever has to go is closed and forgotten at once.
 */
export class Guests {
  /** Both in the order in which they came. */
  readonly #strangers = new Set<Guest>();
  readonly #peers = new Set<Guest>();
  #bufferedBytes = 0;

  /**
   * Takes in a connection that has not said HELLO yet. At the cap the oldest one goes of the address
   * that has the most: who fills the place makes room for all others.
   */
  admit(connection: Connection): Guest {
    if (this.#strangers.size >= STRANGERS_MAX) this.#makeRoom();
    const guest: Guest = { connection, serverId: undefined, bufferBytes: 0 };
    this.#strangers.add(guest);
    return guest;
  }

  /** Makes a peer of a stranger: its HELLO is verified. At a cap the oldest peer goes. */
  welcome(guest: Guest, serverId: string): void {
    guest.serverId = serverId;
    this.#strangers.delete(guest);
    const same = [...this.#peers].filter((other) => other.serverId === serverId);
    const [oldest] = same.length >= CONNECTIONS_PER_SERVER_MAX
      ? same
      : this.#peers.size >= PEERS_MAX
      ? this.#peers
      : [];
    if (oldest !== undefined) this.close(oldest);
    this.#peers.add(guest);
  }

  /** Whether it is still here. */
  has(guest: Guest): boolean {
    return this.#peers.has(guest) || this.#strangers.has(guest);
  }

  /**
   * Notes how large a guest's receive buffer is. Returns whom that has closed, if anybody: the guest
   * with the largest, once all of them exceed {@linkcode BUFFERED_BYTES_MAX}.
   */
  buffer(guest: Guest, bytes: number): Guest | undefined {
    if (bytes === guest.bufferBytes || !this.has(guest)) return undefined;
    this.#bufferedBytes += bytes - guest.bufferBytes;
    guest.bufferBytes = bytes;
    if (this.#bufferedBytes <= BUFFERED_BYTES_MAX) return undefined;
    const largest = [...this.#peers, ...this.#strangers].reduce((largest, other) =>
      other.bufferBytes > largest.bufferBytes ? other : largest
    );
    this.close(largest);
    return largest;
  }

  /** Forgets and closes it. Twice is harmless. */
  close(guest: Guest): void {
    guest.connection.close();
    if (!this.#strangers.delete(guest) && !this.#peers.delete(guest)) return;
    this.#bufferedBytes -= guest.bufferBytes;
  }

  /** Forgets and closes all. */
  closeAll(): void {
    for (const guest of [...this.#strangers, ...this.#peers]) this.close(guest);
  }

  /** Closes the oldest stranger of the address that most of them come from. */
  #makeRoom(): void {
    const counts = new Map<string, number>();
    for (const { connection: { remote: { ip } } } of this.#strangers) {
      counts.set(ip, (counts.get(ip) ?? 0) + 1);
    }
    const most = Math.max(...counts.values());
    for (const guest of this.#strangers) {
      if (counts.get(guest.connection.remote.ip) === most) return this.close(guest);
    }
  }
}
