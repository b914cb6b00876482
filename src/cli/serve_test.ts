import assert from "node:assert/strict";
import { createServer, type Server } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { CommandProcess } from "./testing/command.ts";

/** A server that takes connections and never says a word. */
async function listen(): Promise<{ server: Server; port: number } & AsyncDisposable> {
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => sockets.add(socket.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    server,
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A PostgreSQL that refuses every connection. */
const AWAY = { PG_HOST: "127.0.0.1", PG_PORT: "1" };

Deno.test("serve stops the start by one line where a setting cannot be used", async () => {
  await using command = new CommandProcess(["serve"], { POP_WAIT_MAX_INTERVAL_MS: "soon" });
  const { code, stderr, stdout } = await command.ended;
  assert.equal(code, 1);
  assert.match(stderr, /^queen-mesh: POP_WAIT_MAX_INTERVAL_MS must be [^\n]*, not "soon"\n$/);
  assert.equal(stdout, "");
});

Deno.test("serve stops the start by one line where the database's settings cannot be used", async () => {
  await using command = new CommandProcess(["serve"], { DATABASE_URL: "mysql://localhost" });
  const { code, stderr } = await command.ended;
  assert.equal(code, 1);
  assert.match(stderr, /^queen-mesh: DATABASE_URL must [^\n]*\n$/);
});

Deno.test("serve stops the start by one line where the HTTP port is in use", async () => {
  await using other = await listen();
  await using command = new CommandProcess(["serve"], { ...AWAY, PORT: String(other.port) });
  const { code, stderr } = await command.ended;
  assert.equal(code, 1);
  assert.match(stderr, /^queen-mesh: [^\n]*\n$/);
  assert.match(stderr, new RegExp(`${other.port}`));
});

Deno.test("serve serves while PostgreSQL is away, and stops cleanly on a signal", async () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    await using command = new CommandProcess(["serve"], { ...AWAY, PORT: "0" });
    const { port } = await command.logged("The replica serves");
    const status = await fetch(`http://127.0.0.1:${port}/status`);
    assert.equal(status.status, 200);
    await status.body?.cancel();
    const pop = await fetch(`http://127.0.0.1:${port}/api/v1/pop/queue/q?wait=true`);
    assert.equal(pop.status, 503);
    assert.equal(typeof (await pop.json()).error, "string");
    command.kill(signal);
    const { code, stderr } = await command.ended;
    assert.deepEqual([code, stderr], [0, ""]);
  }
});

Deno.test("a second signal ends serve at once", async () => {
  // A PostgreSQL that never answers: the start, and so the stop, waits for its timeout.
  await using silent = await listen();
  await using command = new CommandProcess(["serve"], {
    PG_HOST: "127.0.0.1",
    PG_PORT: String(silent.port),
    QUEEN_PG_TIMEOUT_MS: "600000",
    PORT: "0",
  });
  await once(silent.server, "connection");
  command.kill("SIGTERM");
  await command.logged("The replica stops");
  command.kill("SIGTERM");
  const { code } = await command.ended;
  assert.equal(code, 143);
});

Deno.test("the command tells its version", async () => {
  await using command = new CommandProcess(["--version"]);
  const { code, stdout } = await command.ended;
  assert.equal(code, 0);
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
});

Deno.test("an unknown command is refused", async () => {
  await using command = new CommandProcess(["frobnicate"]);
  const { code, stderr } = await command.ended;
  assert.equal(code, 1);
  assert.match(stderr, /unknown command/);
});
