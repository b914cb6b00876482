/**
 * The other side of a connection under test, by bare sockets that can do what the seam cannot: end
 * one direction, reset, never accept.
 *
 * @module
 */

import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { within } from "./within.ts";

/** A bare server. */
export interface RawServer {
  /** The port that it listens on. */
  readonly port: number;
  /** Resolves to the next socket that arrives. */
  next(): Promise<Socket>;
  /** Resolves once every socket that has arrived has been closed by its peer. */
  drained(): Promise<void>;
  /** Ends the server and its sockets. */
  close(): Promise<void>;
}

/** Listens on `host`, at a port that the system chooses. */
export async function rawServer(host: string): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const arrived: Socket[] = [];
  let wanted: ((socket: Socket) => void) | undefined;
  let isClosing = false;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    // One that was on its way when the others were destroyed would keep the server open for good.
    if (isClosing) socket.destroy();
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    if (wanted === undefined) arrived.push(socket);
    else wanted(socket);
    wanted = undefined;
  });
  await within(
    new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen({ host, port: 0 }, resolve);
    }),
    "a bare server listens",
  );
  return {
    port: (server.address() as AddressInfo).port,
    next() {
      const socket = arrived.shift();
      if (socket !== undefined) return Promise.resolve(socket);
      const next = new Promise<Socket>((resolve) => wanted = resolve);
      return within(next, "a socket arrives at the bare server");
    },
    drained() {
      const gone = [...sockets].map((socket) => {
        if (socket.readableEnded) socket.destroy();
        else socket.once("end", () => socket.destroy()).resume();
        return rawClosed(socket);
      });
      return Promise.all(gone).then(() => {});
    },
    close() {
      isClosing = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      return within(closed, "the bare server closes");
    },
  };
}

/** Connects a bare socket, paused. */
export function rawConnect(port: number, host: string): Promise<Socket> {
  const socket = connect({ port, host, allowHalfOpen: true });
  const connected = new Promise<Socket>((resolve, reject) => {
    socket.once("connect", () => resolve(socket.pause()));
    socket.on("error", reject);
  });
  return within(connected, "a bare socket connects");
}

/** Resolves once the socket is closed, whichever way. */
export function rawClosed(socket: Socket): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
  return within(closed, "a bare socket closes");
}

/** Resolves to the first `count` bytes, as text. */
export function rawText(socket: Socket, count: number): Promise<string> {
  const text = new Promise<string>((resolve) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString();
      if (text.length >= count) resolve(text);
    }).resume();
  });
  return within(text, `${count} bytes arrive at a bare socket`);
}

/** A port at which a dial neither succeeds nor fails. */
export interface StuckPort {
  /** The port, on 127.0.0.1. */
  readonly port: number;
  /** Gives the port back. */
  close(): Promise<void>;
}

/** The program of the thread that listens and then sleeps until `close`. */
const STUCK_THREAD = `
  const { parentPort, workerData } = require("node:worker_threads");
  const server = require("node:net").createServer();
  server.listen({ host: "127.0.0.1", port: 0, backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    Atomics.wait(workerData, 0, 0);
    server.close();
  });`;

/** Listens on a thread that never accepts, and fills the queue, so that the next dial waits. */
export async function stuckPort(): Promise<StuckPort> {
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(STUCK_THREAD, { eval: true, workerData: gate });
  const port = await within(
    new Promise<number>((resolve, reject) => {
      worker.once("message", resolve).once("error", reject);
    }),
    "the thread listens",
  );
  const fillers = [await rawConnect(port, "127.0.0.1"), await rawConnect(port, "127.0.0.1")];
  return {
    port,
    async close() {
      for (const filler of fillers) filler.destroy();
      await Promise.all(fillers.map(rawClosed));
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
      await within(worker.terminate(), "the thread ends");
    },
  };
}
