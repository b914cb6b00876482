import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { bundleForNode } from "../testing/node_bundle.ts";
import { testDatabase } from "../testing/test_database.ts";
import { CommandProcess } from "./testing/command.ts";

/** A server that takes connections and never says a word. */
async function listen(): Promise<{ server: Server; port: number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  let isClosing = false;
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    // One that was on its way when the others were destroyed would keep the server open for good.
    if (isClosing) socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    server,
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      isClosing = true;
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
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

Deno.test("serve stops the start by one line where it has no such address", async () => {
  // An address of nobody's, for documents alone.
  const settings = { ...AWAY, HOST: "192.0.2.1", PORT: "0" };
  await using command = new CommandProcess(["serve"], settings);
  const { code, stderr } = await command.ended;
  assert.equal(code, 1);
  assert.match(stderr, /^queen-mesh: [^\n]*192\.0\.2\.1[^\n]*\n$/);
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

Deno.test("serve answers the pops that wait when it is asked to stop", async () => {
  const database = await testDatabase();
  try {
    await using command = new CommandProcess(["serve"], { DATABASE_URL: database.url, PORT: "0" });
    const { port } = await command.logged("The replica serves");
    const url = `http://127.0.0.1:${port}`;
    const pop = fetch(`${url}/api/v1/pop/queue/q?wait=true`);
    const signal = AbortSignal.timeout(30_000);
    for (;;) {
      const stats = await (await fetch(`${url}/internal/api/shared-state/stats`)).json();
      if (stats.waker.parked === 1) break;
      await delay(5, undefined, { signal });
    }
    command.kill("SIGTERM");
    const [reply, ended] = await Promise.all([pop, command.ended]);
    assert.equal(reply.status, 204);
    assert.deepEqual([ended.code, ended.stderr], [0, ""]);
  } finally {
    await database.drop();
  }
});

Deno.test("serve runs under Node as well", async () => {
  const bundle = await bundleForNode(new URL("./bin.ts", import.meta.url));
  try {
    const settings = { ...AWAY, HOST: "127.0.0.1", PORT: "0" };
    await using command = new CommandProcess(["serve"], settings, {
      bundle: bundle.path,
    });
    const { port } = await command.logged("The replica serves");
    const health = await fetch(`http://127.0.0.1:${port}/health`);
    assert.equal(health.status, 503);
    await health.body?.cancel();
    const metrics = await fetch(`http://127.0.0.1:${port}/metrics`);
    assert.match(await metrics.text(), /^queen_mesh_build_info\{version="/m);
    command.kill("SIGTERM");
    const { code, stderr } = await command.ended;
    assert.deepEqual([code, stderr], [0, ""]);
  } finally {
    await bundle.remove();
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
  const connected = once(silent.server, "connection").then(() => true);
  assert(await Promise.race([connected, command.ended.then(() => false)]), "it never connected");
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
