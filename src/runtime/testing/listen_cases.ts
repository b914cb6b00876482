/**
 * Listening and accepting.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Runtime } from "../../mesh/runtime.ts";
import { acceptOne, bytesOf, dial, readText, writeAll } from "./pair.ts";
import { rawClosed, rawConnect } from "./raw_peer.ts";
import { type DefineTest, within } from "./within.ts";

/** Defines the tests. */
export function listenCases(runtime: Runtime, test: DefineTest): void {
  const { network } = runtime;

  test("without a hostname both families are served, IPv4 under its own name", async () => {
    const listener = await network.listen({ port: 0 });
    for (const ip of ["127.0.0.1", "::1"]) {
      const dialled = await dial(runtime, { ip, port: listener.port });
      const accepted = await acceptOne(listener);
      assert.equal(accepted.remote.ip, ip);
      await writeAll(accepted, bytesOf("welcome"));
      assert.equal(await readText(dialled, 7), "welcome");
      dialled.close();
      accepted.close();
    }
    listener.close();
  });

  test("port 0 gives each listener a port of its own", async () => {
    const one = await network.listen({ port: 0, hostname: "127.0.0.1" });
    const two = await network.listen({ port: 0, hostname: "127.0.0.1" });
    assert.ok(one.port > 0 && two.port > 0 && one.port !== two.port);
    one.close();
    two.close();
  });

  test("a port in use rejects, with and without a hostname", async () => {
    const named = await network.listen({ port: 0, hostname: "127.0.0.1" });
    const { port } = named;
    await assert.rejects(network.listen({ port, hostname: "127.0.0.1" }), { code: "EADDRINUSE" });
    named.close();
    const every = await network.listen({ port: 0 });
    await assert.rejects(network.listen({ port: every.port }), { code: "EADDRINUSE" });
    every.close();
  });

  test("an address of another machine rejects", async () => {
    // RFC 5737 gives these addresses to nobody.
    await assert.rejects(network.listen({ port: 0, hostname: "192.0.2.1" }));
  });

  test("a port can be bound again once its listener is closed", async () => {
    const first = await network.listen({ port: 0, hostname: "127.0.0.1" });
    const { port } = first;
    const dialled = await dial(runtime, { ip: "127.0.0.1", port });
    const accepted = await acceptOne(first);
    const pending = first.accept();
    first.close();
    assert.equal(await within(pending, "the accept ends"), null);
    // The old connection lives on and does not hold the port.
    const second = await network.listen({ port, hostname: "127.0.0.1" });
    await writeAll(dialled, bytesOf("old"));
    assert.equal(await readText(accepted, 3), "old");
    dialled.close();
    accepted.close();
    second.close();
  });

  test("connections that come before the accept are accepted in their order", async () => {
    const listener = await network.listen({ port: 0, hostname: "127.0.0.1" });
    const dialled = [];
    for (const text of ["a", "b", "c"]) {
      const connection = await dial(runtime, { ip: "127.0.0.1", port: listener.port });
      await writeAll(connection, bytesOf(text));
      dialled.push(connection);
    }
    for (const text of ["a", "b", "c"]) {
      const accepted = await acceptOne(listener);
      assert.equal(await readText(accepted, 1), text);
      accepted.close();
    }
    for (const connection of dialled) connection.close();
    listener.close();
  });

  test("peers that have reset their connections keep nobody else waiting", async () => {
    const listener = await network.listen({ port: 0, hostname: "127.0.0.1" });
    for (let count = 0; count < 20; count++) {
      const socket = await rawConnect(listener.port, "127.0.0.1");
      socket.resetAndDestroy();
      await rawClosed(socket);
    }
    const dialled = await dial(runtime, { ip: "127.0.0.1", port: listener.port });
    await writeAll(dialled, bytesOf("alive"));
    for (let text = ""; text !== "alive";) {
      const accepted = await acceptOne(listener);
      // Those that the system hands over all the same end at once.
      text = await readText(accepted, 5).catch(() => "");
      accepted.close();
    }
    dialled.close();
    listener.close();
  });
}
