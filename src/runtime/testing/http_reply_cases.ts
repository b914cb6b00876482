/**
 * Requests, replies, and clients that leave.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { ListenHttp } from "../../broker/http_seam.ts";
import { Call } from "./call.ts";
import { exchange, get, readToEnd, readUntil, send } from "./raw_http.ts";
import { rawConnect } from "./raw_peer.ts";
import { type DefineTest, rejects, staysPending, within } from "./within.ts";

const LOCAL = { port: 0, hostname: "127.0.0.1" };

/** Larger than what the kernel takes for one connection. */
const LARGE_BYTES = 64 * 1024 * 1024;

/** Defines the tests. */
export function httpReplyCases(listenHttp: ListenHttp, test: DefineTest): void {
  test("a request and its reply keep method, path, headers, status and body", async () => {
    const listener = await listenHttp(async (request) => {
      const url = new URL(request.url);
      const seen = [request.method, url.pathname, url.search, request.headers.get("x-in")];
      return new Response(`${seen.join(" ")} ${await request.text()}`, {
        status: 207,
        headers: { "x-out": "there", "content-type": "text/x-test" },
      });
    }, LOCAL);
    const reply = await exchange(
      listener.port,
      "POST /a/b?c=d HTTP/1.1\r\nhost: localhost\r\nx-in: here\r\ncontent-length: 4\r\n\r\nbody",
    );
    assert.match(reply, /^HTTP\/1\.1 207 /);
    assert.match(reply, /\r\nx-out: there\r\n/);
    assert.match(reply, /\r\ncontent-type: text\/x-test\r\n/);
    assert.match(reply, /POST \/a\/b \?c=d here body/);
    await listener.close();
  });

  test("a connection serves one request after another", async () => {
    let count = 0;
    const listener = await listenHttp(() => Promise.resolve(new Response(`no ${++count}`)), LOCAL);
    const socket = await send(listener.port, get("/"));
    await readUntil(socket, "no 1");
    socket.write(get("/"));
    await readUntil(socket, "no 2");
    await listener.close();
    socket.destroy();
  });

  test("a streamed request body of 16 MiB arrives whole, whatever its chunks", async () => {
    const listener = await listenHttp(async (request) => {
      let [length, sum] = [0, 0];
      assert.ok(request.body !== null);
      for await (const chunk of request.body) {
        length += chunk.length;
        for (const byte of chunk) sum = (sum + byte) % 1_000_003;
      }
      return new Response(`${length} ${sum}`);
    }, LOCAL);
    const socket = await send(
      listener.port,
      "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    let [length, sum] = [0, 0];
    while (length < 16 * 1024 * 1024) {
      const chunk = new Uint8Array(1 + (length % 99_991)).fill(length % 251);
      length += chunk.length;
      sum = (sum + chunk.length * chunk[0]!) % 1_000_003;
      socket.write(`${chunk.length.toString(16)}\r\n`);
      socket.write(chunk);
      await new Promise((resolve) => socket.write("\r\n", resolve));
    }
    socket.write("0\r\n\r\n");
    await readUntil(socket, `${length} ${sum}`);
    socket.destroy();
    await listener.close();
  });

  test("a client that leaves while the handler waits aborts the signal", async () => {
    for (const leave of ["destroy", "resetAndDestroy"] as const) {
      const waiting = new Call();
      const listener = await listenHttp(waiting.handler, LOCAL);
      const socket = await send(listener.port, get("/"));
      const { request, delivery } = await waiting.begun();
      assert.equal(request.signal.aborted, false);
      socket[leave]();
      await within(aborted(request.signal), "the signal aborts");
      await rejects(delivery.completed, "the delivery ends");
      waiting.reply(new Response("too late"));
      await listener.close();
    }
  });

  test("a client that leaves aborts the signal of every pipelined request", async () => {
    const first = new Call();
    const second = new Call();
    const listener = await listenHttp((request, delivery) => {
      return (request.url.endsWith("/first") ? first : second).handler(request, delivery);
    }, LOCAL);
    const socket = await send(listener.port, get("/first") + get("/second"));
    const signals = [(await first.begun()).request.signal, (await second.begun()).request.signal];
    socket.destroy();
    await within(Promise.all(signals.map(aborted)), "the signals abort");
    await rejects((await second.begun()).delivery.completed, "the delivery ends");
    first.reply(new Response());
    second.reply(new Response());
    await listener.close();
  });

  test("a reply that was taken whole completes and does not abort the signal", async () => {
    for (const body of ["short", null]) {
      const call = new Call();
      const listener = await listenHttp(call.handler, LOCAL);
      const socket = await send(listener.port, get("/"));
      const { request, delivery } = await call.begun();
      // Some runtimes arm the signal when it is looked at.
      assert.equal(request.signal.aborted, false);
      call.reply(new Response(body, { status: body === null ? 204 : 200 }));
      await within(delivery.completed, "the delivery completes");
      await readUntil(socket, body ?? "\r\n\r\n");
      socket.destroy();
      await listener.close();
      assert.equal(request.signal.aborted, false);
    }
  });

  test("a reply completes only when a slow client has let the kernel take it", async () => {
    const call = new Call();
    const listener = await listenHttp(call.handler, LOCAL);
    const socket = await send(listener.port, get("/"));
    const { delivery } = await call.begun();
    call.reply(new Response(new Uint8Array(LARGE_BYTES)));
    assert.ok(await staysPending(delivery.completed, 250), "64 MiB were taken unread");
    let length = 0;
    socket.on("data", (chunk) => length += chunk.length).resume();
    await within(delivery.completed, "the delivery completes");
    await listener.close();
    assert.ok(length > LARGE_BYTES - 16 * 1024 * 1024, `only ${length} bytes were read`);
    socket.destroy();
  });

  test("a client that leaves in the middle of a reply rejects its delivery", async () => {
    for (const leave of ["destroy", "resetAndDestroy"] as const) {
      const call = new Call();
      const listener = await listenHttp(call.handler, LOCAL);
      const socket = await send(listener.port, get("/"));
      const { delivery } = await call.begun();
      call.reply(new Response(new Uint8Array(LARGE_BYTES)));
      await readUntil(socket, "\r\n\r\n");
      socket[leave]();
      await rejects(delivery.completed, "the delivery ends");
      await listener.close();
    }
  });

  test("a streamed reply is cancelled when its client leaves", async () => {
    const call = new Call();
    const listener = await listenHttp(call.handler, LOCAL);
    const socket = await send(listener.port, get("/"));
    const { delivery } = await call.begun();
    const cancelled = new Promise<void>((resolve) => {
      call.reply(
        new Response(
          new ReadableStream({
            start: (controller) => controller.enqueue(new TextEncoder().encode("first")),
            cancel: () => resolve(),
          }),
        ),
      );
    });
    await readUntil(socket, "first");
    socket.destroy();
    await within(cancelled, "the stream is cancelled");
    await rejects(delivery.completed, "the delivery ends");
    await listener.close();
  });

  test("a handler that fails gives 500 and is reported, and serving goes on", async () => {
    const errors: unknown[] = [];
    const listener = await listenHttp((request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/throws") throw new Error("thrown");
      if (pathname === "/rejects") return Promise.reject(new Error("rejected"));
      return Promise.resolve(new Response("fine"));
    }, { ...LOCAL, onError: (error) => errors.push(error) });
    const failed = [
      await exchange(listener.port, get("/throws")),
      await exchange(listener.port, get("/rejects")),
    ];
    for (const reply of failed) {
      assert.match(reply, /^HTTP\/1\.1 500 /);
      assert.doesNotMatch(reply, /thrown|rejected/);
    }
    assert.deepEqual(errors.map((error) => (error as Error).message), ["thrown", "rejected"]);
    assert.match(await exchange(listener.port, get("/")), /fine/);
    await listener.close();
  });

  test("a request that is no HTTP is refused before the handler, and serving goes on", async () => {
    let calls = 0;
    const errors: unknown[] = [];
    const listener = await listenHttp(() => {
      calls++;
      return Promise.resolve(new Response("fine"));
    }, { ...LOCAL, onError: (error) => errors.push(error) });
    for (
      const text of ["GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nhost: a b\r\n\r\n", "?\r\n\r\n"]
    ) {
      assert.match(await exchange(listener.port, text), /^HTTP\/1\.1 400 /);
    }
    assert.equal(calls, 0);
    assert.deepEqual(errors, []);
    assert.match(await exchange(listener.port, get("/")), /fine/);
    await listener.close();
  });

  test("a connection beyond the bound is closed at once, until another one leaves", async () => {
    const listener = await listenHttp(() => Promise.resolve(new Response("fine")), {
      ...LOCAL,
      connectionsMax: 1,
    });
    const first = await send(listener.port, get("/"));
    await readUntil(first, "fine");
    const second = await rawConnect(listener.port, "127.0.0.1");
    assert.equal(await readToEnd(second), "");
    first.destroy();
    await within(served(listener.port), "another connection is served");
    await listener.close();
  });

  test("without a hostname both families are served", async () => {
    const listener = await listenHttp(() => Promise.resolve(new Response("fine")), { port: 0 });
    for (const host of ["127.0.0.1", "::1"]) {
      const socket = await rawConnect(listener.port, host);
      socket.write(get("/").replace("\r\n", "\r\nconnection: close\r\n"));
      assert.match(await readToEnd(socket), /fine/);
    }
    await listener.close();
  });
}

/** Tries until it is served. */
async function served(port: number): Promise<void> {
  while (!/fine/.test(await exchange(port, get("/")))) { /* The listener has not seen it leave. */ }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
