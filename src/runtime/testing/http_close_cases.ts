/**
 * Closing an HTTP listener, whatever is under way.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { ListenHttp } from "../../broker/http_seam.ts";
import { Call } from "./call.ts";
import { get, readToEnd, readUntil, send } from "./raw_http.ts";
import { rawClosed, rawConnect } from "./raw_peer.ts";
import { type DefineTest, rejects, staysPending, within } from "./within.ts";

const LOCAL = { port: 0, hostname: "127.0.0.1" };

/** Defines the tests. */
export function httpCloseCases(listenHttp: ListenHttp, test: DefineTest): void {
  test("close waits for a handler under way, whose client gets its reply", async () => {
    const call = new Call();
    const listener = await listenHttp(call.handler, LOCAL);
    const socket = await send(listener.port, get("/"));
    await call.begun();
    const closing = listener.close();
    await assert.rejects(rawConnect(listener.port, "127.0.0.1"), { code: "ECONNREFUSED" });
    assert.ok(await staysPending(closing, 100), "the listener closed before its handler ended");
    call.reply(new Response("the reply"));
    const reply = await readToEnd(socket);
    assert.match(reply, /\r\nconnection: close\r\n/i);
    assert.match(reply, /the reply/);
    await within(closing, "the listener closes");
  });

  test("close waits for a handler whose client has left", async () => {
    const call = new Call();
    const listener = await listenHttp(call.handler, LOCAL);
    const socket = await send(listener.port, get("/"));
    const { delivery } = await call.begun();
    socket.destroy();
    await rejects(delivery.completed, "the delivery ends");
    const closing = listener.close();
    await assert.rejects(rawConnect(listener.port, "127.0.0.1"), { code: "ECONNREFUSED" });
    assert.ok(await staysPending(closing, 100), "the listener closed before its handler ended");
    call.reply(new Response());
    await within(closing, "the listener closes");
  });

  test("close lets a reply that has begun come to its end", async () => {
    const call = new Call();
    const listener = await listenHttp(call.handler, LOCAL);
    const socket = await send(listener.port, get("/"));
    await call.begun();
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    call.reply(new Response(new ReadableStream({ start: (given) => void (controller = given) })));
    controller.enqueue(new TextEncoder().encode("begun, "));
    await readUntil(socket, "begun, ");
    const closing = listener.close();
    controller.enqueue(new TextEncoder().encode("ended"));
    controller.close();
    assert.match(await readToEnd(socket), /ended/);
    await within(closing, "the listener closes");
  });

  test("close lets an upload that has begun come to its end", async () => {
    const begun = new Call();
    const listener = await listenHttp(async (request, delivery) => {
      begun.handler(request, delivery);
      return new Response(`got ${await request.text()}`);
    }, LOCAL);
    const head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 6\r\n\r\n";
    const socket = await send(listener.port, `${head}abc`);
    await begun.begun();
    const closing = listener.close();
    socket.write("def");
    assert.match(await readToEnd(socket), /got abcdef/);
    await within(closing, "the listener closes");
  });

  test("connections without a request under way do not delay close", async () => {
    const listener = await listenHttp(() => Promise.resolve(new Response("fine")), LOCAL);
    const idle = await send(listener.port, get("/"));
    await readUntil(idle, "fine");
    const silent = await rawConnect(listener.port, "127.0.0.1");
    const halting = await send(listener.port, "GET / HTTP/1.1\r\nhost: local");
    // One request that comes and goes after theirs: the listener knows of them all by then.
    const last = await send(listener.port, get("/"));
    await readUntil(last, "fine");
    const sockets = [idle, silent, halting, last];
    for (const socket of sockets) {
      socket.removeAllListeners("error").on("error", () => {});
      socket.on("end", () => socket.destroy()).resume();
    }
    await within(listener.close(), "the listener closes");
    await Promise.all(sockets.map(rawClosed));
  });

  test("a closed listener has given its port back, and closing twice is harmless", async () => {
    const handler = () => Promise.resolve(new Response("fine"));
    const first = await listenHttp(handler, LOCAL);
    await assert.rejects(listenHttp(handler, { ...LOCAL, port: first.port }), {
      code: "EADDRINUSE",
    });
    await Promise.all([first.close(), first.close()]);
    await first.close();
    const second = await listenHttp(handler, { ...LOCAL, port: first.port });
    assert.equal(second.port, first.port);
    await second.close();
  });
}
