import { Buffer } from "node:buffer";
import type { Connection, Listener, Network } from "../../src/mesh/runtime.ts";
import type { Plant } from "./setup.ts";

/** A frame on its way. */
export interface PassingFrame {
  /** The type byte. */
  readonly type: number;
  /** The payload. */
  readonly payload: Buffer;
  /** The whole frame. */
  readonly bytes: Buffer;
  /** Its place on the connection: 0 is the first. */
  readonly position: number;
}

/** What goes on instead of a frame: the frame itself, other bytes, or none. */
export type Rewrite = (frame: PassingFrame) => Uint8Array | Promise<Uint8Array>;

/** A stream that is taken apart into frames and put together from what is to go on instead. */
class Rewriter {
  readonly #rewrite: Rewrite;
  #held = Buffer.alloc(0);
  #position = 0;

  constructor(rewrite: Rewrite) {
    this.#rewrite = rewrite;
  }

  async push(chunk: Uint8Array): Promise<Buffer> {
    this.#held = Buffer.concat([this.#held, chunk]);
    const out: Uint8Array[] = [];
    while (this.#held.length >= 4) {
      const length = this.#held.readUInt32BE(0);
      // Nothing that could be a frame: it goes on as it is.
      const isFrame = length >= 1 && length <= 16 * 1024 * 1024;
      if (isFrame && this.#held.length < 4 + length) break;
      const bytes = isFrame ? this.#held.subarray(0, 4 + length) : this.#held;
      this.#held = this.#held.subarray(bytes.length);
      out.push(
        isFrame
          ? await this.#rewrite({
            type: bytes[4]!,
            payload: bytes.subarray(5),
            bytes,
            position: this.#position++,
          })
          : bytes,
      );
    }
    return Buffer.concat(out);
  }
}

/** A connection on which other frames arrive than were sent. */
export function rewritingReads(connection: Connection, rewrite: Rewrite): Connection {
  const rewriter = new Rewriter(rewrite);
  return filteringReads(connection, (chunk) => rewriter.push(chunk));
}

/** A connection on which other bytes arrive than were sent. */
export function filteringReads(
  connection: Connection,
  filter: (chunk: Buffer) => Uint8Array | Promise<Uint8Array>,
): Connection {
  let ready: Uint8Array = new Uint8Array();
  return {
    remote: connection.remote,
    write: (bytes) => connection.write(bytes),
    close: () => connection.close(),
    async read(buffer) {
      const chunk = Buffer.alloc(65_536);
      while (ready.length === 0) {
        const count = await connection.read(chunk);
        if (count === null) return null;
        ready = await filter(Buffer.from(chunk.subarray(0, count)));
      }
      const count = Math.min(buffer.length, ready.length);
      buffer.set(ready.subarray(0, count));
      ready = ready.subarray(count);
      return count;
    },
  };
}

/** A connection that sends other frames than it is given. */
export function rewritingWrites(connection: Connection, rewrite: Rewrite): Connection {
  const rewriter = new Rewriter(rewrite);
  return {
    remote: connection.remote,
    read: (buffer) => connection.read(buffer),
    close: () => connection.close(),
    async write(bytes) {
      await writeAll(connection, await rewriter.push(bytes));
      return bytes.length;
    },
  };
}

/** Writes all of it. */
export async function writeAll(connection: Connection, bytes: Uint8Array): Promise<void> {
  for (let start = 0; start < bytes.length;) {
    start += await connection.write(bytes.subarray(start));
  }
}

/** Puts a wrapper around every connection that the node accepts. */
export function withAccepted(wrap: (connection: Connection) => Connection): Plant {
  return withNetwork((network) => ({
    listen: async (options) => {
      const listener = await network.listen(options);
      const wrapped: Listener = {
        port: listener.port,
        close: () => listener.close(),
        async accept() {
          const connection = await listener.accept();
          return connection && wrap(connection);
        },
      };
      return wrapped;
    },
  }));
}

/** Puts a wrapper around every connection that the node dials. */
export function withDialled(wrap: (connection: Connection) => Connection): Plant {
  return withNetwork((network) => ({
    connect: async (endpoint, options) => wrap(await network.connect(endpoint, options)),
  }));
}

/** Changes the network. */
export function withNetwork(change: (network: Network) => Partial<Network>): Plant {
  return (setup) => {
    const { network } = setup.runtime;
    const whole: Network = {
      resolve: (host, options) => network.resolve(host, options),
      connect: (endpoint, options) => network.connect(endpoint, options),
      listen: (options) => network.listen(options),
      ...change(network),
    };
    return { ...setup, runtime: { ...setup.runtime, network: whole } };
  };
}
