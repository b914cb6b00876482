/**
 * What the mesh asks of the runtime that it runs on: connections, a clock and randomness.
 *
 * The mesh never touches a socket, a timer or a random source by itself. It is handed a
 * {@linkcode Runtime}: the Deno adapter, the Node adapter, or a simulated one in which a whole
 * mesh runs from a seed.
 *
 * @module
 */

/** A resolved endpoint: a literal IP address, without brackets, and a TCP port. */
export interface Endpoint {
  /** An IPv4 or IPv6 literal, never a host name. */
  readonly ip: string;
  /** The TCP port, from 1 to 65535. */
  readonly port: number;
}

/**
 * One TCP connection. At most one read and one write are under way at any time; the mesh sees to
 * that.
 */
export interface Connection {
  /** The other end. An IPv4 peer met over a dual-stack listener is named as plain IPv4. */
  readonly remote: Endpoint;

  /**
   * Reads what has arrived, at least one byte and at most `buffer.length`.
   *
   * Resolves to the count of bytes, or to `null` at the end of the stream and after
   * {@linkcode Connection.close | close}. Rejects where the connection broke.
   */
  read(buffer: Uint8Array): Promise<number | null>;

  /**
   * Hands bytes to the kernel and resolves to how many it took: at least one, at most
   * `bytes.length`. The bytes must not change before that. Stays pending while the kernel takes
   * nothing; never buffers on its own. Rejects where the connection broke or was closed.
   */
  write(bytes: Uint8Array): Promise<number>;

  /** Closes at once, pending reads and writes included. Closing twice is harmless. */
  close(): void;
}

/** A bound TCP port. At most one accept is under way at any time; the mesh sees to that. */
export interface Listener {
  /** The port that was bound; the one chosen by the system where 0 was asked for. */
  readonly port: number;

  /**
   * Resolves to the next connection, with TCP_NODELAY and keepalive set, or to `null` once the
   * listener is closed. At most one accept is under way at a time. Rejects where a connection
   * cannot be accepted now (no file descriptor is free, say): the listener goes on, and the caller
   * should wait a little. A peer that has gone before it was accepted is passed over in silence:
   * else whoever comes and goes could keep the others waiting.
   */
  accept(): Promise<Connection | null>;

  /** Unbinds the port and ends a pending accept. Closing twice is harmless. */
  close(): void;
}

/** How to stop waiting. */
export interface Abortable {
  /** Ends the call: it rejects promptly, and nothing that it began is left open. */
  readonly signal: AbortSignal;
}

/** Where to listen. */
export interface ListenOptions {
  /** The port to bind; 0 lets the system choose. */
  readonly port: number;
  /** The address to bind; every address of both families where it is left out. */
  readonly hostname?: string;
}

/** The network as the mesh sees it. */
export interface Network {
  /**
   * Resolves a host name, or an IP literal without brackets, to every address that it yields, in
   * the resolver's order and at least one. Asks anew each time, but may join a look-up of the same
   * host that is still under way. Where the system's resolver cannot be stopped, an abort ends the
   * call all the same, and the process may live until the resolver has given up.
   */
  resolve(host: string, options: Abortable): Promise<readonly string[]>;

  /** Connects to one endpoint, with TCP_NODELAY set. */
  connect(endpoint: Endpoint, options: Abortable): Promise<Connection>;

  /** Binds a port. Rejects where it cannot be bound. */
  listen(options: ListenOptions): Promise<Listener>;
}

/** A timer that has been set. */
export interface Timer {
  /** Prevents the call, if it has not happened yet. Cancelling twice is harmless. */
  cancel(): void;
}

/** Time. */
export interface Clock {
  /** Milliseconds since an arbitrary origin; never goes back. */
  now(): number;
  /** Calls `callback` once, `ms` milliseconds from now at the earliest; below 0 counts as 0. */
  setTimer(ms: number, callback: () => void): Timer;
}

/** Fills `bytes` with random bytes, unpredictable to others, and returns it. */
export type Random = (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

/** All that a runtime offers. */
export interface Runtime {
  /** Connections. */
  readonly network: Network;
  /** Time. */
  readonly clock: Clock;
  /** Randomness, for nonces and jitter. */
  readonly random: Random;
}

/** Where the mesh reports what an operator would want to know. Fields hold the values. */
export interface Logger {
  /** Something worth knowing that needs no action. */
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Something that an operator may have to act upon. */
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Something that went wrong in this program. */
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}
