/**
 * Closing, whatever is under way.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Runtime } from "../../mesh/runtime.ts";
import { bytesOf, connectPair, readText, writeAll, writeUntilStuck } from "./pair.ts";
import { rawClosed, rawConnect } from "./raw_peer.ts";
import { type DefineTest, rejects, within } from "./within.ts";

/** Defines the tests. */
export function closeCases(runtime: Runtime, test: DefineTest): void {
  const { network } = runtime;

  test("close ends a pending read with null, on either end", async () => {
    for (const end of ["dialled", "accepted"] as const) {
      const pair = await connectPair(runtime, "127.0.0.1");
      const read = pair[end].read(new Uint8Array(16));
      pair[end].close();
      assert.equal(await within(read, "the read ends"), null);
      pair.close();
    }
  });

  test("close ends a read that has waited, and is seen by the peer", async () => {
    const { dialled, accepted, close } = await connectPair(runtime, "127.0.0.1");
    await writeAll(dialled, bytesOf("x"));
    assert.equal(await readText(accepted, 1), "x");
    const ours = accepted.read(new Uint8Array(16));
    const theirs = dialled.read(new Uint8Array(16));
    accepted.close();
    assert.equal(await within(ours, "our read ends"), null);
    assert.equal(await within(theirs, "the peer's read ends"), null);
    close();
  });

  test("close rejects a write that waits, on either end", async () => {
    for (const end of ["dialled", "accepted"] as const) {
      const pair = await connectPair(runtime, "127.0.0.1");
      const { write } = await writeUntilStuck(pair[end]);
      pair[end].close();
      await rejects(write, "the write ends");
      pair.close();
    }
  });

  test("close ends a read and a write that wait together", async () => {
    const { dialled, accepted, close } = await connectPair(runtime, "127.0.0.1");
    const read = dialled.read(new Uint8Array(16));
    const { write } = await writeUntilStuck(dialled);
    dialled.close();
    assert.equal(await within(read, "the read ends"), null);
    await rejects(write, "the write ends");
    accepted.close();
    close();
  });

  test("a closed connection reads null, even what had arrived, and rejects writes", async () => {
    const { dialled, accepted } = await connectPair(runtime, "127.0.0.1");
    await writeAll(dialled, bytesOf("abc"));
    assert.equal(await readText(accepted, 1), "a");
    accepted.close();
    assert.equal(await accepted.read(new Uint8Array(16)), null);
    await assert.rejects(accepted.write(bytesOf("x")), /closed/);
    dialled.close();
  });

  test("close ends a pending accept with null, and later ones too", async () => {
    const listener = await network.listen({ port: 0, hostname: "127.0.0.1" });
    const pending = listener.accept();
    listener.close();
    assert.equal(await within(pending, "the accept ends"), null);
    assert.equal(await within(listener.accept(), "the next accept ends"), null);
  });

  test("closing twice is harmless, for a connection and a listener", async () => {
    const listener = await network.listen({ port: 0, hostname: "127.0.0.1" });
    const pair = await connectPair(runtime, "127.0.0.1");
    for (let times = 0; times < 2; times++) {
      pair.close();
      listener.close();
    }
    assert.equal(await listener.accept(), null);
  });

  test("a listener that closes drops the connections that nobody accepted", async () => {
    const listener = await network.listen({ port: 0, hostname: "127.0.0.1" });
    const sockets = [];
    for (let i = 0; i < 3; i++) {
      const socket = await rawConnect(listener.port, "127.0.0.1");
      socket.removeAllListeners("error").on("error", () => {}).on("end", () => socket.destroy());
      sockets.push(socket.resume());
    }
    listener.close();
    await Promise.all(sockets.map(rawClosed));
  });
}
