/**
 * What the replica asks of the runtime that serves its HTTP API.
 *
 * @module
 */

/** What becomes of one reply. */
export interface Delivery {
  /**
   * Resolves once the kernel has taken the whole reply; rejects where the client left before that.
   * Nobody has to listen to it.
   */
  readonly completed: Promise<void>;
}

/**
 * Answers one request. `request.signal` aborts as soon as the client is gone, unless it has had its
 * reply by then. The request may be one that `new Request(request)` does not take: read it, do not
 * copy it. Never rejects.
 */
export type HttpHandler = (request: Request, delivery: Delivery) => Promise<Response>;

/** Where to listen for HTTP. */
export interface HttpListenOptions {
  /** The port to bind; 0 lets the system choose. */
  readonly port: number;
  /** The address to bind; every address of both families where it is left out. */
  readonly hostname?: string;
  /**
   * How many connections there can be at a time; one that comes beyond it is closed at once. 10000
   * where it is left out. Keep it below the number of files that the process can open: past that,
   * a runtime can stop accepting for good.
   */
  readonly connectionsMax?: number;
  /**
   * Is told what no handler can be told: a handler that rejected against its contract, which the
   * client sees as 500; a connection that could not be accepted. Serving goes on.
   */
  readonly onError?: (error: unknown) => void;
}

/** A bound HTTP port. */
export interface HttpListener {
  /** The port that was bound. */
  readonly port: number;
  /**
   * Takes no more connections and unbinds the port. Resolves when every request under way has been
   * answered and every handler has ended, also one whose client has left. Connections without a
   * request under way are closed at once, the others after their reply. Closing twice is harmless.
   */
  close(): Promise<void>;
}

/** Binds a port and answers every request by `handler`. Rejects where it cannot be bound. */
export type ListenHttp = (
  handler: HttpHandler,
  options: HttpListenOptions,
) => Promise<HttpListener>;
