import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import postgres from "postgres";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "./embedded_postgres.ts";

async function ask(url: string, text: string): Promise<unknown> {
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
  try {
    const rows = await sql.unsafe(text);
    return rows[0]?.["answer"];
  } finally {
    await sql.end();
  }
}

/** The directory is the one that the server itself names. */
async function dataDirectory(server: EmbeddedPostgres): Promise<string> {
  return await ask(server.url, "select current_setting('data_directory') as answer") as string;
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = AbortSignal.timeout(20_000);
  while (!await holds()) {
    if (deadline.aborted) assert.fail(`not within 20 s: ${what}`);
    await delay(20);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(() => true, () => false);
}

Deno.test("an embedded server answers, and stopping it leaves no process and no file", async () => {
  const server = await startEmbeddedPostgres();
  const { pid } = server;
  const data = await dataDirectory(server).finally(() => server.stop());
  assert.ok(pid !== undefined && !isAlive(pid));
  assert.equal(await exists(data), false);
  assert.equal(server.pid, undefined);
  await server.stop();
});

Deno.test("an embedded server keeps to the loopback and wants its password", async () => {
  const server = await startEmbeddedPostgres();
  try {
    const listens = await ask(server.url, "select current_setting('listen_addresses') as answer");
    assert.equal(listens, "127.0.0.1");
    const url = new URL(server.url);
    url.password = "another";
    await assert.rejects(ask(url.href, "select 1 as answer"), { code: "28P01" });
  } finally {
    await server.stop();
  }
});

Deno.test("embedded servers started at once do not meet", async () => {
  const servers = await Promise.all([1, 2, 3].map(() => startEmbeddedPostgres()));
  try {
    assert.equal(new Set(await Promise.all(servers.map(dataDirectory))).size, 3);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
});

Deno.test("an embedded server keeps its data and its URL over a crash", async () => {
  const server = await startEmbeddedPostgres({ settings: { work_mem: "5MB" } });
  try {
    const { url } = server;
    await ask(url, "create table kept as select 42 as answer");
    await server.crash();
    await assert.rejects(ask(url, "select 1 as answer"));
    await server.restart();
    assert.equal(server.url, url);
    assert.equal(await ask(url, "select answer from kept"), 42);
    assert.equal(await ask(url, "select current_setting('work_mem') as answer"), "5MB");
  } finally {
    await server.stop();
  }
});

/** A program of its own that starts a server in `parent` and prints its address. */
function startElsewhere(parent: string) {
  const module = fileURLToPath(new URL("./embedded_postgres.ts", import.meta.url));
  const script = `
    import { startEmbeddedPostgres } from ${JSON.stringify(module)};
    const server = await startEmbeddedPostgres({ parent: ${JSON.stringify(parent)} });
    console.log(JSON.stringify({ url: server.url, pid: server.pid }));
  `;
  const child = spawn(process.execPath, ["run", "-A", "--ext=ts", "-"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.end(script);
  return child;
}

async function withParent(work: (parent: string) => Promise<void>): Promise<void> {
  const parent = await mkdtemp(join(tmpdir(), "queen-mesh-test-"));
  try {
    // The account that the server runs under must get through.
    await chmod(parent, 0o755);
    await work(parent);
  } finally {
    await rm(parent, { recursive: true });
  }
}

Deno.test("an embedded server ends and is cleaned up when its starter is killed", async () => {
  await withParent(async (parent) => {
    const child = startElsewhere(parent);
    const [line] = await once(child.stdout.setEncoding("utf8"), "data");
    const { url, pid } = JSON.parse(line);
    assert.equal(await ask(url, "select 1 as answer"), 1);
    child.kill("SIGKILL");
    await once(child, "close");
    await until("the server has ended", () => Promise.resolve(!isAlive(pid)));
    await until("its files are gone", async () => (await readdir(parent)).length === 0);
  });
});

Deno.test("what a starter that is killed half-way has made is removed", async () => {
  await withParent(async (parent) => {
    const child = startElsewhere(parent);
    await until("something is made", async () => (await readdir(parent)).length > 0);
    child.kill("SIGKILL");
    await once(child, "close");
    await until("its files are gone", async () => (await readdir(parent)).length === 0);
  });
});

Deno.test("an embedded server that cannot start says why and leaves nothing", async () => {
  await withParent(async (parent) => {
    const settings = { shared_buffers: "nonsense" };
    await assert.rejects(startEmbeddedPostgres({ settings, parent }), /invalid value/);
    assert.deepEqual(await readdir(parent), []);
  });
});
