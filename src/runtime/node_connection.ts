/**
 * One socket of `node:net`, held to the contract of a connection.
 *
 * @module
 */

import type { Socket } from "node:net";
import type { Connection, Endpoint } from "../mesh/runtime.ts";
import { plainIp } from "./address.ts";

/** How every socket is made. */
export const SOCKET_OPTIONS = {
  /** The end of what the peer sends must not end what we send. */
  allowHalfOpen: true,
  /** One chunk is held at most; the rest waits in the kernel, which slows the peer down. */
  highWaterMark: 1,
} as const;

/** The most that is given to the socket at a time: it buffers whatever it is given. */
const WRITE_BYTES_MAX = 65_536;

/** A call that waits. */
interface Pending<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}

/** A connection over a connected, paused socket, which it takes over. */
export class NodeConnection implements Connection {
  readonly remote: Endpoint;
  readonly #socket: Socket;
  #closed = false;
  #listening = false;
  /** Why the connection broke. */
  #error: Error | undefined;
  /** What was read and did not fit into the caller's buffer. */
  #rest: Uint8Array | null = null;
  #reader: Pending<number | null> & { readonly buffer: Uint8Array } | undefined;
  #writer: Pending<number> | undefined;

  /**
   * @param socket The connected socket.
   * @param remote The other end.
   */
  constructor(socket: Socket, remote: Endpoint) {
    this.#socket = socket;
    this.remote = { ip: plainIp(remote.ip), port: remote.port };
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("The connection is closed")));
  }

  read(buffer: Uint8Array): Promise<number | null> {
    return new Promise((resolve, reject) => {
      this.#reader = { buffer, resolve, reject };
      if (!this.#listening) {
        // Not earlier: to listen is to start reading.
        this.#listening = true;
        this.#socket.on("readable", () => this.#pump());
        this.#socket.on("end", () => this.#pump());
      }
      this.#pump();
    });
  }

  write(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new Error("Cannot write: the connection is closed");
      if (this.#error !== undefined) throw this.#error;
      const chunk = bytes.subarray(0, WRITE_BYTES_MAX);
      this.#writer = { resolve, reject };
      // The callback comes once the kernel has taken the chunk. It comes without an error as well
      // when the socket is destroyed, but then the writer has been rejected before.
      this.#socket.write(chunk, (error) => {
        this.#writer = undefined;
        if (error) reject(error);
        else resolve(chunk.length);
      });
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#rest = null;
    this.#socket.destroy();
    this.#fail(new Error("The connection was closed"));
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.#writer?.reject(this.#error);
    this.#writer = undefined;
    this.#pump();
  }

  /** Answers the pending read, where there is something to answer. */
  #pump(): void {
    const reader = this.#reader;
    if (reader === undefined) return;
    if (this.#closed) {
      this.#reader = undefined;
      reader.resolve(null);
      return;
    }
    const chunk = this.#rest ?? this.#socket.read() as Uint8Array | null;
    if (chunk !== null) {
      this.#reader = undefined;
      const count = Math.min(chunk.length, reader.buffer.length);
      reader.buffer.set(count === chunk.length ? chunk : chunk.subarray(0, count));
      this.#rest = count === chunk.length ? null : chunk.subarray(count);
      reader.resolve(count);
    } else if (this.#socket.readableEnded) {
      this.#reader = undefined;
      reader.resolve(null);
    } else if (this.#error !== undefined) {
      this.#reader = undefined;
      reader.reject(this.#error);
    }
  }
}
