import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../embedded/embedded_postgres.ts";
import { pauseServer } from "../testing/paused_server.ts";
import { testDatabase } from "../testing/test_database.ts";
import { CommandProcess } from "./testing/command.ts";
import { Producer, Serving, until } from "./testing/serving.ts";

const KEY = "0123456789abcdef".repeat(4);

/** Runs `test` with a database and a directory that are gone afterwards. */
async function withDatabase(test: (url: string, directory: string) => Promise<void>) {
  const database = await testDatabase();
  const directory = await mkdtemp(join(tmpdir(), "queen-mesh-test-"));
  try {
    await test(database.url, directory);
  } finally {
    await database.drop();
    await rm(directory, { recursive: true });
  }
}

/** The stored transactionIds by partition, in number order. */
async function storedAt(url: string): Promise<Map<string, string[]>> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const rows = await sql.unsafe(
      `select partition.name, transaction_id
        from queen_mesh.message join queen_mesh.partition on partition.id = partition_id
        order by partition.name, number`,
    );
    const stored = new Map<string, string[]>();
    for (const row of rows) {
      stored.set(row["name"], [...stored.get(row["name"]) ?? [], row["transaction_id"]]);
    }
    return stored;
  } finally {
    await sql.end();
  }
}

/**
 * Sees to it that what each producer was told to be stored is so, once and in its order. What nobody
 * answered may be there or not.
 */
async function assertAllStored(url: string, producers: Record<string, Producer>): Promise<void> {
  const stored = await storedAt(url);
  for (const [name, { accepted }] of Object.entries(producers)) {
    const found = stored.get(name) ?? [];
    assert.equal(new Set(found).size, found.length, `duplicates in ${name}`);
    const told = new Set(accepted.map(({ transactionId }) => transactionId));
    const kept = found.filter((transactionId) => told.has(transactionId));
    assert.deepEqual(kept, accepted.map(({ transactionId }) => transactionId), name);
  }
}

Deno.test("what is buffered survives crashes during pushes and during the drain, exactly once", async () => {
  await withDatabase(async (url, directory) => {
    const settings = { DATABASE_URL: url, FILE_BUFFER_DIR: directory };
    await using first = await Serving.start(settings);
    await first.call("/api/v1/configure", { queue: "q", options: { dedupWindowSeconds: 1 } });
    await first.setMaintenance(true);
    const producers = Object.fromEntries(
      ["a", "b", "c"].map((name) => [name, new Producer(name, { target: first, batch: 50 })]),
    );
    const all = Object.values(producers);
    await until(() => all.every((producer) => producer.count("buffered") >= 1000));
    await first.crash();

    await using second = await Serving.start(settings);
    assert.ok(await second.buffered() >= 3000);
    assert.equal((await storedAt(url)).size, 0);
    for (const producer of all) producer.target = second;
    const counts = all.map((producer) => producer.count("buffered"));
    await until(() => all.every((producer, i) => producer.count("buffered") > counts[i]!));
    await Promise.all(all.map((producer) => producer.stop()));
    await second.setMaintenance(false);
    await until(async () => (await storedAt(url)).size > 0);
    await second.crash();

    await using third = await Serving.start(settings);
    await until(async () => await third.buffered() === 0);
    for (const producer of all) {
      assert.equal(producer.count("buffered"), producer.accepted.length);
    }
    await assertAllStored(url, producers);
  });
});

for (const how of ["stopped", "frozen"] as const) {
  Deno.test(`with PostgreSQL ${how} under load pushes are buffered, the rest is 503, and all recovers`, async () => {
    const server = await startEmbeddedPostgres();
    const directory = await mkdtemp(join(tmpdir(), "queen-mesh-test-"));
    try {
      const settings = {
        DATABASE_URL: server.url,
        QUEEN_PG_TIMEOUT_MS: "1000",
        FILE_BUFFER_DIR: join(directory, "a"),
      };
      await using replica = await Serving.start(settings);
      const producers = Object.fromEntries(
        ["a", "b", "c", "d"].map((name) => [name, new Producer(name, { target: replica })]),
      );
      const all = Object.values(producers);
      await until(() => all.every((producer) => producer.count("queued") >= 20));

      const paused = how === "frozen" ? await pauseServer(server.pid!) : undefined;
      if (paused === undefined) await server.crash();
      try {
        await until(() => all.every((producer) => producer.count("buffered") >= 20));
        const ack = { transactionId: "t", partitionId: crypto.randomUUID() };
        for (
          const { status, body } of await Promise.all([
            replica.call("/health"),
            replica.call("/api/v1/pop/queue/q"),
            replica.call("/api/v1/ack", ack),
          ])
        ) {
          assert.equal(status, 503);
          assert.equal(typeof body.error, "string");
        }
        assert.equal((await replica.call("/status")).status, 200);
      } finally {
        paused?.resume();
      }
      if (paused === undefined) await server.restart();

      await until(async () => (await replica.call("/health")).status === 200);
      const counts = all.map((producer) => producer.count("queued"));
      await until(() => all.every((producer, i) => producer.count("queued") > counts[i]!));
      await Promise.all(all.map((producer) => producer.stop()));
      await until(async () => await replica.buffered() === 0);
      for (const producer of all) assert.equal(producer.refusedCount, 0);
      assert.equal((await replica.call("/api/v1/pop/queue/q")).status, 200);
      await assertAllStored(server.url, producers);
    } finally {
      await server.stop();
      await rm(directory, { recursive: true });
    }
  });
}

Deno.test("with PostgreSQL away at the start serve buffers, and drains once it is there", async () => {
  const server = await startEmbeddedPostgres();
  try {
    await server.crash();
    await using replica = await Serving.start({
      DATABASE_URL: server.url,
      QUEEN_ENCRYPTION_KEY: KEY,
    });
    assert.equal((await replica.call("/health")).status, 503);
    const items = [{ queue: "q", payload: 1 }];
    const { status, body } = await replica.call("/api/v1/push", { items });
    assert.deepEqual([status, body[0].status], [201, "buffered"]);
    await server.restart();
    await until(async () => (await replica.call("/health")).status === 200);
    const pop = await replica.call("/api/v1/pop/queue/q?wait=true");
    assert.equal(pop.body.messages[0].id, body[0].message_id);
  } finally {
    await server.stop();
  }
});

Deno.test("a second process on the same spool is refused by one line", async () => {
  await withDatabase(async (url, directory) => {
    const settings = { DATABASE_URL: url, FILE_BUFFER_DIR: directory };
    await using _first = await Serving.start(settings);
    await using second = new CommandProcess(["serve"], { ...settings, PORT: "0" });
    const { code, stderr } = await second.ended;
    assert.equal(code, 1);
    assert.match(stderr, /^queen-mesh: [^\n]+\n$/);
    assert(stderr.includes(directory), stderr);
  });
});

Deno.test("the spool of a replica that is gone is reported, and drained with --adopt", async () => {
  await withDatabase(async (url, directory) => {
    const settings = (id: string) => ({
      DATABASE_URL: url,
      QUEEN_SERVER_ID: id,
      FILE_BUFFER_DIR: join(directory, id),
    });
    await using a = await Serving.start(settings("a"));
    await a.setMaintenance(true);
    const items = [{ queue: "q", payload: 1 }];
    assert.equal((await a.call("/api/v1/push", { items })).body[0].status, "buffered");
    await a.crash();

    await using b = await Serving.start(settings("b"));
    const report = "The spool of another replica lies here; serve --adopt drains it";
    assert.equal((await b.command.logged(report))["directory"], join(directory, "a"));
    await b.setMaintenance(false);
    assert.equal((await b.call("/api/v1/pop/queue/q")).status, 204);
    b.command.kill("SIGTERM");
    await b.command.ended;

    await using again = await Serving.start(settings("b"), { args: ["--adopt"] });
    assert.equal((await again.call("/api/v1/pop/queue/q?wait=true")).status, 200);
  });
});

Deno.test("encryption that is switched on at one replica holds at another without a mesh", async () => {
  await withDatabase(async (url, directory) => {
    const settings = (id: string) => ({
      DATABASE_URL: url,
      QUEEN_SERVER_ID: id,
      QUEEN_ENCRYPTION_KEY: KEY,
      FILE_BUFFER_DIR: join(directory, id),
    });
    await using a = await Serving.start(settings("a"));
    await using b = await Serving.start(settings("b"));
    const push = async (payload: string) => {
      const { body } = await b.call("/api/v1/push", { items: [{ queue: "q", payload }] });
      assert.equal(body[0].status, "queued");
    };
    await push("in the clear");
    await a.call("/api/v1/configure", { queue: "q", options: { encryptionEnabled: true } });
    await push("a secret");
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    const rows = await sql.unsafe(
      "select payload, encrypted from queen_mesh.message order by number",
    );
    await sql.end();
    assert.deepEqual(rows.map((row) => row["encrypted"]), [false, true]);
    assert.equal(rows[0]!["payload"], '"in the clear"');
    assert(!rows[1]!["payload"].includes("secret"));
    const { body } = await a.call("/api/v1/pop/queue/q");
    const data = body.messages.map((message: { data: string }) => message.data);
    assert.deepEqual(data, ["in the clear", "a secret"]);
  });
});

Deno.test("an encryption key that is none stops the start by one line that does not show it", async () => {
  await using command = new CommandProcess(["serve"], { QUEEN_ENCRYPTION_KEY: `${KEY}z` });
  const { code, stderr } = await command.ended;
  assert.equal(code, 1);
  assert.match(stderr, /^queen-mesh: QUEEN_ENCRYPTION_KEY must be 64 hex digits[^\n]*\n$/);
  assert(!stderr.includes(KEY));
});
