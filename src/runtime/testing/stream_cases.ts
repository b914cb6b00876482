/**
 * Bytes through a connection.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Connection, Runtime } from "../../mesh/runtime.ts";
import {
  acceptOne,
  bytesOf,
  connectPair,
  dial,
  pattern,
  readFull,
  readText,
  writeAll,
  writeUntilStuck,
} from "./pair.ts";
import { rawConnect, rawServer, rawText } from "./raw_peer.ts";
import { type DefineTest, rejects, within } from "./within.ts";

/** Defines the tests. */
export function streamCases(runtime: Runtime, test: DefineTest): void {
  test("bytes go both ways", async () => {
    const { dialled, accepted, close } = await connectPair(runtime, "127.0.0.1");
    await writeAll(dialled, bytesOf("from the dialled end"));
    assert.equal(await readText(accepted, 20), "from the dialled end");
    await writeAll(accepted, bytesOf("from the accepted end"));
    assert.equal(await readText(dialled, 21), "from the accepted end");
    close();
  });

  test("bytes go both ways at the same time", async () => {
    const { dialled, accepted, close } = await connectPair(runtime, "127.0.0.1");
    const bytes = pattern(4 * 1024 * 1024);
    const [, , there, back] = await Promise.all([
      writeAll(dialled, bytes),
      writeAll(accepted, bytes),
      readFull(accepted, new Uint8Array(bytes.length)),
      readFull(dialled, new Uint8Array(bytes.length)),
    ]);
    assert.ok(equal(there, bytes), "the accepted end got something else");
    assert.ok(equal(back, bytes), "the dialled end got something else");
    close();
  });

  test("two connections keep their bytes apart", async () => {
    const one = await connectPair(runtime, "127.0.0.1");
    const two = await connectPair(runtime, "127.0.0.1");
    const read = [readText(one.accepted, 3), readText(two.accepted, 3)];
    await writeAll(two.dialled, bytesOf("two"));
    await writeAll(one.dialled, bytesOf("one"));
    assert.deepEqual(await Promise.all(read), ["one", "two"]);
    one.close();
    two.close();
  });

  test("a chunk that is larger than the reader's buffer comes in several reads", async () => {
    const { dialled, accepted, close } = await connectPair(runtime, "127.0.0.1");
    await writeAll(dialled, bytesOf("abcdefgh"));
    assert.equal(await readText(accepted, 3), "abc");
    assert.equal(await readText(accepted, 3), "def");
    assert.equal(await readText(accepted, 2), "gh");
    close();
  });

  test("a read fills only what arrived and leaves the rest of the buffer alone", async () => {
    const { dialled, accepted, close } = await connectPair(runtime, "127.0.0.1");
    await writeAll(dialled, bytesOf("ab"));
    const buffer = new Uint8Array(4).fill(0xee);
    await readFull(accepted, buffer.subarray(1, 3));
    assert.deepEqual([...buffer], [0xee, 0x61, 0x62, 0xee]);
    close();
  });

  test("16 MiB arrive whole at a reader with a small buffer, in several writes", async () => {
    const { dialled, accepted, close } = await connectPair(runtime, "127.0.0.1");
    const bytes = pattern(16 * 1024 * 1024);
    const parts = writeAll(dialled, bytes);
    const got = new Uint8Array(bytes.length);
    for (let at = 0; at < got.length; at += 4096) {
      await readFull(accepted, got.subarray(at, at + 4096));
    }
    assert.ok(equal(got, bytes), "something else arrived");
    assert.ok(await parts > 1, "16 MiB were taken at once");
    close();
  });

  test("a peer that floods is held back while nobody reads, and nothing is lost", async () => {
    for (const reader of ["dialled", "accepted"] as const) {
      const pair = await connectPair(runtime, "127.0.0.1");
      const writer = reader === "dialled" ? pair.accepted : pair.dialled;
      // A first read, so that a reader that goes on by itself would be found out.
      await writeAll(writer, bytesOf("x"));
      assert.equal(await readText(pair[reader], 1), "x");
      const { taken, write } = await writeUntilStuck(writer);
      await readFull(pair[reader], new Uint8Array(taken));
      const more = await within(write, "the waiting write goes on");
      await readFull(pair[reader], new Uint8Array(more));
      pair.close();
    }
  });

  test("the end of the stream is null, and stays null", async () => {
    const { dialled, accepted, close } = await connectPair(runtime, "127.0.0.1");
    await writeAll(dialled, bytesOf("bye"));
    dialled.close();
    assert.equal(await readText(accepted, 3), "bye");
    assert.equal(await readOnce(accepted), null);
    assert.equal(await readOnce(accepted), null);
    close();
  });

  test("a dialled connection can write after the peer has ended its direction", async () => {
    const server = await rawServer("127.0.0.1");
    const connection = await dial(runtime, { ip: "127.0.0.1", port: server.port });
    const socket = await server.next();
    socket.end("done");
    assert.equal(await readText(connection, 4), "done");
    assert.equal(await readOnce(connection), null);
    await writeAll(connection, bytesOf("heard"));
    assert.equal(await rawText(socket, 5), "heard");
    connection.close();
    await server.close();
  });

  test("an accepted connection can write after the peer has ended its direction", async () => {
    const listener = await runtime.network.listen({ port: 0, hostname: "127.0.0.1" });
    const socket = await rawConnect(listener.port, "127.0.0.1");
    const connection = await acceptOne(listener);
    socket.end("done");
    assert.equal(await readText(connection, 4), "done");
    assert.equal(await readOnce(connection), null);
    await writeAll(connection, bytesOf("heard"));
    assert.equal(await rawText(socket, 5), "heard");
    connection.close();
    socket.destroy();
    listener.close();
  });

  test("a reset rejects the pending read, then reads and writes", async () => {
    const server = await rawServer("127.0.0.1");
    const connection = await dial(runtime, { ip: "127.0.0.1", port: server.port });
    const socket = await server.next();
    const read = connection.read(new Uint8Array(16));
    socket.resetAndDestroy();
    await rejects(read, "the read ends", { code: "ECONNRESET" });
    await rejects(connection.write(bytesOf("lost")), "the write ends");
    connection.close();
    assert.equal(await readOnce(connection), null);
    await server.close();
  });
}

function readOnce(connection: Connection): Promise<number | null> {
  return within(connection.read(new Uint8Array(64)), "a read ends");
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
