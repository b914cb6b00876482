/**
 * Connections for tests, and what to do with their bytes.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Connection, Listener, Runtime } from "../../mesh/runtime.ts";
import { staysPending, within } from "./within.ts";

/** Both ends of one connection. */
export interface Pair {
  /** The end that was dialled. */
  readonly dialled: Connection;
  /** The end that was accepted. */
  readonly accepted: Connection;
  /** Closes both. */
  close(): void;
}

/** Dials `host` at a port of its own and accepts there. */
export async function connectPair(runtime: Runtime, host: string): Promise<Pair> {
  const listener = await runtime.network.listen({ port: 0, hostname: host });
  try {
    const accepted = acceptOne(listener);
    const dialled = await dial(runtime, { ip: host, port: listener.port });
    const pair = { dialled, accepted: await accepted };
    return {
      ...pair,
      close() {
        pair.dialled.close();
        pair.accepted.close();
      },
    };
  } finally {
    listener.close();
  }
}

/** Connects, with no wish to give up. */
export function dial(
  runtime: Runtime,
  endpoint: { readonly ip: string; readonly port: number },
): Promise<Connection> {
  const { signal } = new AbortController();
  return within(runtime.network.connect(endpoint, { signal }), "a dial succeeds");
}

/** Accepts one connection. */
export async function acceptOne(listener: Listener): Promise<Connection> {
  const connection = await within(listener.accept(), "a connection is accepted");
  assert.ok(connection !== null, "the listener was closed");
  return connection;
}

/** Writes all bytes, part by part, and resolves to the number of parts. */
export async function writeAll(connection: Connection, bytes: Uint8Array): Promise<number> {
  let parts = 0;
  for (let at = 0; at < bytes.length; parts++) {
    const count = await within(connection.write(bytes.subarray(at)), "a write");
    assert.ok(count >= 1 && count <= bytes.length - at, `a write gave ${count}`);
    at += count;
  }
  return parts;
}

/** Reads until `bytes` is full. */
export async function readFull<T extends Uint8Array>(connection: Connection, bytes: T): Promise<T> {
  for (let at = 0; at < bytes.length;) {
    const count = await within(connection.read(bytes.subarray(at)), "a read");
    assert.ok(count !== null, `the stream ended after ${at} of ${bytes.length} bytes`);
    assert.ok(count >= 1 && count <= bytes.length - at, `a read gave ${count}`);
    at += count;
  }
  return bytes;
}

/** Reads `count` bytes as text. */
export async function readText(connection: Connection, count: number): Promise<string> {
  return new TextDecoder().decode(await readFull(connection, new Uint8Array(count)));
}

/** Text as bytes. */
export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Bytes that differ from their neighbours and from themselves a few pages on. */
export function pattern(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + (i >>> 8) * 7 + (i >>> 16) * 13) & 0xff;
  return bytes;
}

/** What {@linkcode writeUntilStuck} found. */
export interface Stuck {
  /** How many bytes the kernel took. */
  readonly taken: number;
  /** The write that waits. */
  readonly write: Promise<number>;
}

/** Far above what both kernels take for one connection. */
const STUCK_BYTES_MAX = 64 * 1024 * 1024;

/** Writes to a peer that does not read until a write waits; fails where that never happens. */
export async function writeUntilStuck(connection: Connection): Promise<Stuck> {
  const bytes = new Uint8Array(1024 * 1024);
  for (let taken = 0; taken < STUCK_BYTES_MAX;) {
    const write = connection.write(bytes);
    // Looked at twice: a busy machine can let one timer pass before the write's own event.
    if (await staysPending(write, 250) && await staysPending(write, 250)) return { taken, write };
    taken += await write;
  }
  throw new Error(`${STUCK_BYTES_MAX} bytes were taken though nobody reads`);
}
