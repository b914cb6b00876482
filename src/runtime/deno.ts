/**
 * The Deno adapter: connections by Deno's own sockets. It moves bytes and knows nothing of what
 * they mean.
 *
 * @module
 */

import type {
  Abortable,
  Connection,
  Endpoint,
  Listener,
  ListenOptions,
  Runtime,
} from "../mesh/runtime.ts";
import { abortable } from "./abortable.ts";
import { bindEveryAddress, plainIp, resolveHost } from "./address.ts";
import { systemClock, systemRandom } from "./system.ts";

/** What Deno's accept rejects with where the peer has gone meanwhile. */
const GONE = new Set(["ENOTCONN", "ECONNABORTED", "ECONNRESET"]);

/** The runtime as Deno offers it. Needs the permission to use the network. */
export function denoRuntime(): Runtime {
  return {
    network: { resolve: resolveHost, connect, listen },
    clock: systemClock,
    random: systemRandom,
  };
}

class DenoConnection implements Connection {
  readonly remote: Endpoint;
  readonly #conn: Deno.TcpConn;
  #closed = false;

  constructor(conn: Deno.TcpConn) {
    this.#conn = conn;
    this.remote = { ip: plainIp(conn.remoteAddr.hostname), port: conn.remoteAddr.port };
  }

  async read(buffer: Uint8Array): Promise<number | null> {
    try {
      const count = await this.#conn.read(buffer);
      return this.#closed ? null : count;
    } catch (error) {
      // Deno rejects a read that closing ends, and one that comes later.
      if (this.#closed) return null;
      throw error;
    }
  }

  async write(bytes: Uint8Array): Promise<number> {
    if (this.#closed) throw new Error("Cannot write: the connection is closed");
    return await this.#conn.write(bytes);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#conn.close();
  }
}

class DenoListener implements Listener {
  readonly port: number;
  readonly #listener: Deno.TcpListener;
  #closed = false;

  constructor(listener: Deno.TcpListener) {
    this.#listener = listener;
    this.port = listener.addr.port;
  }

  async accept(): Promise<Connection | null> {
    while (!this.#closed) {
      let conn: Deno.TcpConn;
      try {
        conn = await this.#listener.accept();
      } catch (error) {
        // Closing under a pending accept makes Deno reject it.
        if (this.#closed || GONE.has((error as { code?: string }).code ?? "")) continue;
        throw error;
      }
      if (this.#closed) conn.close();
      else {
        try {
          return adopt(conn, { keepAlive: true });
        } catch {
          // It has been closed: some systems refuse the options of a connection that was reset.
        }
      }
    }
    return null;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#listener.close();
  }
}

async function connect({ ip, port }: Endpoint, { signal }: Abortable): Promise<Connection> {
  signal.throwIfAborted();
  const dial = new AbortController();
  // Deno looks at the signal once more when it has connected, and if it throws then, the new
  // connection is lost without being closed. So that look must find nothing.
  dial.signal.throwIfAborted = () => {};
  try {
    const dialled = Deno.connect({ hostname: ip, port, signal: dial.signal });
    return adopt(await abortable(dialled, signal, (conn) => conn.close()), { keepAlive: false });
  } catch (error) {
    dial.abort();
    throw error;
  }
}

function listen({ port, hostname }: ListenOptions): Promise<Listener> {
  function bind(hostname: string): Listener {
    return new DenoListener(Deno.listen({ port, hostname }));
  }
  return hostname === undefined ? bindEveryAddress(bind) : Promise.resolve(hostname).then(bind);
}

function adopt(conn: Deno.TcpConn, { keepAlive }: { keepAlive: boolean }): Connection {
  try {
    conn.setNoDelay(true);
    if (keepAlive) conn.setKeepAlive(true);
    return new DenoConnection(conn);
  } catch (error) {
    conn.close();
    throw error;
  }
}
