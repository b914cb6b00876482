/**
 * Resolving and dialling.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Runtime } from "../../mesh/runtime.ts";
import { acceptOne, bytesOf, dial, readText, writeAll } from "./pair.ts";
import { rawServer, stuckPort } from "./raw_peer.ts";
import { countListeners } from "./signal.ts";
import { type DefineTest, rejects, within } from "./within.ts";

/** Defines the tests. */
export function connectCases(runtime: Runtime, test: DefineTest): void {
  const { network } = runtime;
  const never = new AbortController().signal;

  test("an IPv4 and an IPv6 literal resolve to themselves", async () => {
    assert.deepEqual(await network.resolve("127.0.0.1", { signal: never }), ["127.0.0.1"]);
    assert.deepEqual(await network.resolve("::1", { signal: never }), ["::1"]);
  });

  test("a name without an address rejects", async () => {
    // RFC 6761 keeps the domain empty.
    await rejects(network.resolve("nobody.invalid", { signal: never }), "the look-up ends");
  });

  test("localhost is reached through whichever of its addresses listens", async () => {
    const addresses = await network.resolve("localhost", { signal: never });
    assert.ok(addresses.length > 0);
    for (const listening of addresses) {
      const listener = await network.listen({ port: 0, hostname: listening });
      for (const ip of addresses) {
        const dialled = network.connect({ ip, port: listener.port }, { signal: never });
        if (ip === listening) {
          (await acceptOne(listener)).close();
          (await within(dialled, "the dial succeeds")).close();
        } else await rejects(dialled, "the dial fails");
      }
      listener.close();
    }
  });

  test("IPv4 and IPv6 carry bytes and name the other end", async () => {
    for (const ip of ["127.0.0.1", "::1"]) {
      const listener = await network.listen({ port: 0, hostname: ip });
      const dialled = await dial(runtime, { ip, port: listener.port });
      const accepted = await acceptOne(listener);
      assert.deepEqual(dialled.remote, { ip, port: listener.port });
      assert.equal(accepted.remote.ip, ip);
      assert.ok(accepted.remote.port > 0 && accepted.remote.port !== listener.port);
      await writeAll(dialled, bytesOf(ip));
      assert.equal(await readText(accepted, ip.length), ip);
      dialled.close();
      accepted.close();
      listener.close();
    }
  });

  test("a refused dial rejects", async () => {
    const listener = await network.listen({ port: 0, hostname: "127.0.0.1" });
    const { port } = listener;
    listener.close();
    assert.equal(await listener.accept(), null);
    const dialled = network.connect({ ip: "127.0.0.1", port }, { signal: never });
    await rejects(dialled, "the dial fails", { code: "ECONNREFUSED" });
  });

  test("a signal that has aborted rejects a dial and a look-up at once", async () => {
    const server = await rawServer("127.0.0.1");
    const signal = AbortSignal.abort(new Error("too late"));
    await assert.rejects(network.resolve("localhost", { signal }), { message: "too late" });
    await assert.rejects(
      network.connect({ ip: "127.0.0.1", port: server.port }, { signal }),
      { message: "too late" },
    );
    await server.close();
  });

  test("an abort ends a look-up under way", async () => {
    const controller = new AbortController();
    const resolved = network.resolve("localhost", { signal: controller.signal });
    controller.abort(new Error("given up"));
    await rejects(resolved, "the look-up ends", { message: "given up" });
    // The resolver works on; the next answer comes after it.
    await network.resolve("localhost", { signal: never });
  });

  test("an abort ends a dial that nobody answers, and frees what it had begun", async () => {
    const stuck = await stuckPort();
    const controller = new AbortController();
    const dialled = network.connect(
      { ip: "127.0.0.1", port: stuck.port },
      { signal: controller.signal },
    );
    dialled.catch(() => {});
    // Whatever a dial does before it waits, it has done when another one has come and gone.
    const server = await rawServer("127.0.0.1");
    (await dial(runtime, { ip: "127.0.0.1", port: server.port })).close();
    await server.close();
    controller.abort(new Error("given up"));
    await rejects(dialled, "the dial ends", { message: "given up" });
    await stuck.close();
  });

  test("an abort at any moment of a dial leaves no connection behind", async () => {
    const server = await rawServer("127.0.0.1");
    for (let turns = 0; turns < 40; turns++) {
      const controller = new AbortController();
      const dialled = network.connect(
        { ip: "127.0.0.1", port: server.port },
        { signal: controller.signal },
      );
      const outcome = dialled.then((connection) => connection.close(), () => {});
      for (let turn = 0; turn < turns % 10; turn++) await nextTurn();
      controller.abort();
      await within(outcome, "the dial settles");
    }
    // One that stays until all the others have arrived.
    const last = await dial(runtime, { ip: "127.0.0.1", port: server.port });
    await writeAll(last, bytesOf("last"));
    last.close();
    await within(server.drained(), "the server sees every connection go");
    await server.close();
  });

  test("no listener stays on the signal, whatever becomes of a dial or a look-up", async () => {
    const server = await rawServer("127.0.0.1");
    const controller = new AbortController();
    const { signal } = controller;
    const listeners = countListeners(signal);
    await network.resolve("localhost", { signal });
    await network.resolve("nobody.invalid", { signal }).catch(() => {});
    const connection = await network.connect({ ip: "127.0.0.1", port: server.port }, { signal });
    assert.equal(listeners(), 0);
    // The signal has no say once the connection is made.
    controller.abort();
    await writeAll(connection, bytesOf("alive"));
    connection.close();
    await server.close();

    const refused = new AbortController().signal;
    const left = countListeners(refused);
    await assert.rejects(
      network.connect({ ip: "127.0.0.1", port: server.port }, { signal: refused }),
    );
    assert.equal(left(), 0);
  });
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
