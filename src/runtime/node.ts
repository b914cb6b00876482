/**
 * The Node adapter: connections by `node:net`. It moves bytes and knows nothing of what they mean.
 *
 * @module
 */

import { connect as dial, createServer } from "node:net";
import type {
  Abortable,
  Connection,
  Endpoint,
  Listener,
  ListenOptions,
  Runtime,
} from "../mesh/runtime.ts";
import { bindEveryAddress, resolveHost } from "./address.ts";
import { NodeConnection, SOCKET_OPTIONS } from "./node_connection.ts";
import { NodeListener } from "./node_listener.ts";
import { systemClock, systemRandom } from "./system.ts";

/** The runtime as Node offers it, from version 20. */
export function nodeRuntime(): Runtime {
  return {
    network: { resolve: resolveHost, connect, listen },
    clock: systemClock,
    random: systemRandom,
  };
}

function connect({ ip, port }: Endpoint, { signal }: Abortable): Promise<Connection> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = dial({ ...SOCKET_OPTIONS, host: ip, port });
    // Nothing is read before the connection is asked for bytes.
    socket.pause();
    function onAbort(): void {
      socket.destroy();
      reject(signal.reason);
    }
    function onError(error: Error): void {
      signal.removeEventListener("abort", onAbort);
      reject(error);
    }
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("error", onError);
    socket.once("connect", () => {
      signal.removeEventListener("abort", onAbort);
      socket.removeListener("error", onError);
      socket.setNoDelay(true);
      resolve(new NodeConnection(socket, { ip, port }));
    });
  });
}

function listen({ port, hostname }: ListenOptions): Promise<Listener> {
  function bind(host: string): Promise<Listener> {
    return new Promise((resolve, reject) => {
      const server = createServer({ ...SOCKET_OPTIONS, pauseOnConnect: true });
      server.once("error", reject);
      server.listen({ host, port }, () => {
        server.removeListener("error", reject);
        resolve(new NodeListener(server));
      });
    });
  }
  return hostname === undefined ? bindEveryAddress(bind) : bind(hostname);
}
