import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { NodeListener, QUEUE_MAX } from "./node_listener.ts";
import { acceptOne, readText } from "./testing/pair.ts";
import { rawClosed, rawConnect } from "./testing/raw_peer.ts";
import { rejects } from "./testing/within.ts";

async function listen(): Promise<{ server: Server; listener: NodeListener }> {
  const server = createServer({ pauseOnConnect: true });
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0 }, resolve));
  return { server, listener: new NodeListener(server) };
}

Deno.test("an error while accepting rejects that accept alone", async () => {
  const { server, listener } = await listen();
  const accept = listener.accept();
  server.emit("error", Object.assign(new Error("no file"), { code: "EMFILE" }));
  await rejects(accept, "the accept ends", { code: "EMFILE" });
  const socket = await rawConnect(listener.port, "127.0.0.1");
  (await acceptOne(listener)).close();
  socket.destroy();
  listener.close();
});

Deno.test("an error while nobody accepts waits for the next accept, in its turn", async () => {
  const { server, listener } = await listen();
  const socket = await rawConnect(listener.port, "127.0.0.1");
  socket.write("x");
  const first = await acceptOne(listener);
  assert.equal(await readText(first, 1), "x");
  server.emit("error", new Error("no file"));
  await assert.rejects(listener.accept(), { message: "no file" });
  first.close();
  socket.destroy();
  listener.close();
});

Deno.test("arrivals beyond the queue's bound are dropped", async () => {
  const { listener } = await listen();
  const sockets = [];
  for (let i = 0; i < QUEUE_MAX + 5; i++) {
    const socket = await rawConnect(listener.port, "127.0.0.1");
    socket.write(String.fromCharCode(i));
    sockets.push(socket.on("end", () => socket.destroy()).resume());
    socket.removeAllListeners("error").on("error", () => {});
  }
  await Promise.all(sockets.slice(QUEUE_MAX).map(rawClosed));
  for (let i = 0; i < QUEUE_MAX; i++) {
    const connection = await acceptOne(listener);
    assert.equal(await readText(connection, 1), String.fromCharCode(i));
    connection.close();
  }
  listener.close();
  await Promise.all(sockets.map(rawClosed));
});
