/**
 * HTTP for Deno and Node, by `node:http`, which both have.
 *
 * Deno's own server is faster and keeps less of the contract: it calls a reply complete before it
 * is sent, and when it shuts down it takes the body away from a request under way.
 *
 * @module
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener, RequestError } from "@hono/node-server";
import type {
  Delivery,
  HttpHandler,
  HttpListener,
  HttpListenOptions,
} from "../broker/http_seam.ts";
import { bindEveryAddress } from "./address.ts";

export type { Delivery, HttpHandler, HttpListener, HttpListenOptions };

/** How many connections there can be at a time, where the options do not say. */
const CONNECTIONS_MAX = 10_000;

/** Answers one request of Node's. Never rejects. */
type Answer = (incoming: IncomingMessage, reply: ServerResponse) => Promise<void>;

/** Binds a port and answers every request by `handler`. Rejects where it cannot be bound. */
export async function listenHttp(
  handler: HttpHandler,
  options: HttpListenOptions,
): Promise<HttpListener> {
  const { port, hostname, connectionsMax = CONNECTIONS_MAX, onError = () => {} } = options;
  const answer = getRequestListener(
    (request, { incoming, outgoing }) =>
      handler(request, deliveryOf(incoming as IncomingMessage, outgoing as ServerResponse)),
    {
      overrideGlobalObjects: false,
      errorHandler(error) {
        if (error instanceof RequestError) return new Response(null, { status: 400 });
        onError(error);
        return new Response(null, { status: 500 });
      },
    },
  );
  function bind(host: string): Promise<Server> {
    return new Promise((resolve, reject) => {
      const server = createServer();
      server.maxConnections = connectionsMax;
      server.once("error", reject);
      server.listen({ host, port }, () => {
        server.removeListener("error", reject);
        resolve(server);
      });
    });
  }
  const server = await (hostname === undefined ? bindEveryAddress(bind) : bind(hostname));
  server.on("error", onError);
  return new NodeHttpListener(server, answer);
}

class NodeHttpListener implements HttpListener {
  readonly port: number;
  readonly #server: Server;
  readonly #answer: Answer;
  /** What goes on for each request; it can outlast the connection. */
  readonly #answers = new Set<Promise<void>>();
  /** Every connection, and the replies that are under way on it. */
  readonly #connections = new Map<Socket, Set<ServerResponse>>();
  #closed: Promise<void> | undefined;

  constructor(server: Server, answer: Answer) {
    this.#server = server;
    this.#answer = answer;
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", (socket: Socket) => this.#connect(socket));
    server.on("request", (incoming, reply) => this.#begin(incoming, reply));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const unbound = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const [socket, replies] of this.#connections) {
      if (replies.size === 0) socket.destroy();
      for (const reply of replies) reply.shouldKeepAlive = false;
    }
    await unbound;
    await Promise.all(this.#answers);
  }

  #connect(socket: Socket): void {
    // One that was on its way while the port was unbound.
    if (this.#closed !== undefined) {
      socket.destroy();
      return;
    }
    const replies = new Set<ServerResponse>();
    this.#connections.set(socket, replies);
    socket.once("close", () => {
      this.#connections.delete(socket);
      // Node tells only the first of several pipelined requests.
      for (const reply of replies) if (reply.socket === null) reply.emit("close");
    });
  }

  #begin(incoming: IncomingMessage, reply: ServerResponse): void {
    const { socket } = incoming;
    const replies = this.#connections.get(socket);
    // The connection is gone.
    if (replies === undefined) return;
    replies.add(reply);
    reply.once("close", () => {
      replies.delete(reply);
      if (replies.size === 0 && this.#closed !== undefined) socket.destroySoon();
    });
    const answer = this.#answer(incoming, reply).finally(() => this.#answers.delete(answer));
    this.#answers.add(answer);
  }
}

function deliveryOf({ socket }: IncomingMessage, outgoing: ServerResponse): Delivery {
  const completed = new Promise<void>((resolve, reject) => {
    function onLeft(): void {
      reject(new Error("The client left before it had the reply"));
    }
    outgoing.once("close", onLeft);
    // Node says "finish" as well when it gives up what it could not send.
    outgoing.prependOnceListener("finish", () => socket.destroyed ? onLeft() : resolve());
  });
  // Nobody has to listen.
  completed.catch(() => {});
  return { completed };
}
