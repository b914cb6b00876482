/**
 * What the replica asks of the runtime that serves its HTTP API.
 *
 * @module
 */

/** What becomes of one reply. */
export interface Delivery {
  /**
   * Resolves once the reply has been handed to the client's connection in whole; rejects where the
   * client left before that.
   */
  readonly completed: Promise<void>;
}

/** Answers one request. `request.signal` aborts as soon as the client is gone. Never rejects. */
export type HttpHandler = (request: Request, delivery: Delivery) => Promise<Response>;

/** Where to listen for HTTP. */
export interface HttpListenOptions {
  /** The port to bind; 0 lets the system choose. */
  readonly port: number;
  /** The address to bind; every address of both families where it is left out. */
  readonly hostname?: string;
}

/** A bound HTTP port. */
export interface HttpListener {
  /** The port that was bound. */
  readonly port: number;
  /**
   * Takes no more requests, waits for those under way, and unbinds the port. Idle kept-alive
   * connections are closed at once.
   */
  close(): Promise<void>;
}

/** Binds a port and answers every request by `handler`. Rejects where it cannot be bound. */
export type ListenHttp = (
  handler: HttpHandler,
  options: HttpListenOptions,
) => Promise<HttpListener>;
