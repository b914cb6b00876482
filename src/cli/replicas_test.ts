import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../embedded/embedded_postgres.ts";
import { MESH_DEFAULTS } from "../mesh/config.ts";
import { denoRuntime } from "../runtime/deno.ts";
import { listenHttp } from "../runtime/http.ts";
import { testDatabase } from "../testing/test_database.ts";
import type { PopWaitSettings } from "../broker/backoff.ts";
import { Replica } from "../broker/replica.ts";
import { PostgresStore } from "../broker/store/postgres_store.ts";
import type { ScratchDatabase } from "../broker/store/scratch_database.ts";
import { MemoryLogger } from "../broker/testing/memory_logger.ts";
import { findFreePorts } from "./demo/free_ports.ts";

/** So slow that only a wake explains a reply within the test's deadline. */
const SLOW: PopWaitSettings = { initialMs: 60_000, threshold: 0, multiplier: 1, maxMs: 60_000 };

const HOST = "127.0.0.1";
const DEADLINE_MS = 30_000;

interface Reply {
  readonly status: number;
  // deno-lint-ignore no-explicit-any
  readonly body: any;
}

/** One replica on real sockets, and a client of it. */
class Node {
  readonly replica: Replica;
  readonly logger = new MemoryLogger();

  constructor(
    name: string,
    { url, meshPort, peers, popWait = SLOW }: {
      readonly url: string;
      readonly meshPort: number;
      readonly peers: readonly number[];
      readonly popWait?: PopWaitSettings;
    },
  ) {
    const runtime = denoRuntime();
    this.replica = new Replica({
      runtime,
      listenHttp,
      store: new PostgresStore({
        url,
        schema: "queen_mesh",
        poolSize: 10,
        timeoutMs: 5000,
        clock: runtime.clock,
      }),
      config: {
        port: 0,
        hostname: HOST,
        maxBodyBytes: 1_000_000,
        popWait,
        mesh: {
          ...MESH_DEFAULTS,
          serverId: name,
          hostname: HOST,
          port: meshPort,
          peers: peers.map((port) => ({ host: HOST, port })),
          secret: "s3cr3t",
        },
      },
      logger: this.logger,
    });
  }

  async call(path: string, { body, signal }: { body?: unknown; signal?: AbortSignal } = {}) {
    const response = await fetch(`http://${HOST}:${this.replica.port}${path}`, {
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      signal: signal ?? AbortSignal.timeout(DEADLINE_MS),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) } as Reply;
  }

  pop(queue: string, query = "wait=true"): Promise<Reply> {
    return this.call(`/api/v1/pop/queue/${queue}?${query}`);
  }

  push(queue: string, ...partitions: string[]): Promise<Reply> {
    const items = partitions.map((partition) => ({ queue, partition, payload: { partition } }));
    return this.call("/api/v1/push", { body: { items } });
  }

  async waker(): Promise<Record<string, number>> {
    return (await this.call("/internal/api/shared-state/stats")).body.waker;
  }

  /** Starts pops that wait, and resolves to their replies to come once all of them are parked. */
  async park(queue: string, count: number): Promise<Promise<Reply>[]> {
    const before = (await this.waker())["parked"]!;
    const replies = Array.from({ length: count }, () => this.pop(queue));
    await until(async () => (await this.waker())["parked"] === before + count);
    return replies;
  }
}

/** Replicas that all know each other, on a database of their own. */
async function startNodes(names: readonly string[], url: string, popWait = SLOW): Promise<Node[]> {
  const ports = await findFreePorts(denoRuntime().network, names.length);
  const nodes = names.map((name, i) =>
    new Node(name, {
      url,
      meshPort: ports[i]!,
      peers: ports.filter((port) => port !== ports[i]),
      popWait,
    })
  );
  await Promise.all(nodes.map((node) => node.replica.start()));
  for (const node of nodes) {
    await until(async () => {
      const { body } = await node.call("/internal/api/shared-state/stats");
      return body.servers_alive === names.length - 1 &&
        body.peers.every((peer: { connected: boolean }) => peer.connected);
    });
  }
  return nodes;
}

// Kept until the end, so that one server serves every test.
let kept: ScratchDatabase;
Deno.test.beforeAll(async () => {
  kept = await testDatabase();
});
Deno.test.afterAll(() => kept.drop());

async function withNodes(
  names: readonly string[],
  use: (...nodes: Node[]) => Promise<void>,
): Promise<void> {
  const database = await testDatabase();
  try {
    const nodes = await startNodes(names, database.url);
    try {
      await use(...nodes);
    } finally {
      await Promise.all(nodes.map((node) => node.replica.close()));
    }
  } finally {
    await database.drop();
  }
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  while (!await holds()) await delay(5, undefined, { signal });
}

Deno.test("a push on one replica wakes a pop parked on another, through PostgreSQL", async () => {
  await withNodes(["a", "b", "c"], async (a, b, c) => {
    const [reply] = await b!.park("q", 1);
    const [other] = await c!.park("elsewhere", 1);
    const pushed = await a!.push("q", "p");
    assert.equal(pushed.status, 201);
    const { status, body } = await reply!;
    assert.equal(status, 200);
    assert.deepEqual(body.messages[0].data, { partition: "p" });
    assert.equal(body.messages[0].id, pushed.body[0].message_id);
    const { replies_by_wake, poll_queries } = await b!.waker();
    assert.deepEqual([replies_by_wake, poll_queries], [1, 0]);
    assert.equal((await c!.waker())["wake_queries"], 0);
    await c!.push("elsewhere", "p");
    assert.equal((await other!).status, 200);
  });
});

Deno.test("a hundred parked pops cost few queries for one message, and none waits for a poll", async () => {
  await withNodes(["a", "b"], async (a, b) => {
    const replies = await b!.park("q", 100);
    const before = await b!.waker();
    await a!.push("q", "first");
    await Promise.race(replies);
    // A frame that follows the push's own: once it has been applied, so has that.
    const [marker] = await b!.park("marker", 1);
    await a!.push("marker", "p");
    await marker;
    const after = await b!.waker();
    const queries = after["wake_queries"]! - before["wake_queries"]! - 1;
    assert(queries <= 3, `${queries} queries for one message`);
    assert.equal(after["parked"], 99);

    replies.push(...await b!.park("q", 1));
    await a!.push("q", ...Array.from({ length: 100 }, (_, i) => `p${i}`));
    const partitions = (await Promise.all(replies)).map(({ status, body }) => {
      assert.equal(status, 200);
      return body.partition;
    });
    assert.equal(new Set(partitions).size, 101);
    assert.equal((await b!.waker())["poll_queries"], 0);
  });
});

Deno.test("an ack on one replica wakes a pop parked on another for what is left", async () => {
  await withNodes(["a", "b"], async (a, b) => {
    await a!.push("q", "p");
    const { body } = await a!.pop("q");
    await a!.push("q", "p");
    const [reply] = await b!.park("q", 1);
    const { transactionId, partitionId } = body.messages[0];
    const acked = await a!.call("/api/v1/ack", {
      body: { transactionId, partitionId, leaseId: body.leaseId },
    });
    assert.equal(acked.body[0].success, true);
    assert.equal((await reply!).status, 200);
    assert.equal((await b!.waker())["poll_queries"], 0);
  });
});

Deno.test("a message that failed comes again on another replica once its delay is over", async () => {
  await withNodes(["a", "b"], async (a, b) => {
    await a!.call("/api/v1/configure", { body: { queue: "q", options: { retryDelay: 200 } } });
    await a!.push("q", "p");
    const { body } = await a!.pop("q");
    const [reply] = await b!.park("q", 1);
    const { transactionId, partitionId } = body.messages[0];
    await a!.call("/api/v1/ack", {
      body: { transactionId, partitionId, leaseId: body.leaseId, status: "failed" },
    });
    assert.equal((await reply!).body.messages[0].transactionId, transactionId);
    assert.equal((await b!.waker())["poll_queries"], 0);
  });
});

Deno.test("a client that hangs up leaves no waiter and no lease behind", async () => {
  await withNodes(["a", "b"], async (a, b) => {
    const controller = new AbortController();
    const left = assert.rejects(
      b!.call("/api/v1/pop/queue/q?wait=true", { signal: controller.signal }),
    );
    await until(async () => (await b!.waker())["parked"] === 1);
    controller.abort();
    await left;
    await until(async () => (await b!.waker())["parked"] === 0);
    await a!.push("q", "p");
    const { status, body } = await b!.pop("q", "wait=false");
    assert.equal(status, 200);
    assert.equal(body.partition, "p");
  });
});

Deno.test("any JSON payload comes back as the same text from PostgreSQL", async () => {
  await withNodes(["a", "b"], async (a, b) => {
    const payloads = [
      "1234567890123456789012345678901234567890",
      String.raw`{"b":1,"a":2,"b":3,"\u0000":"\ud800\/ é"}`,
      "[ 1.0,\n -0e5 ]",
      '""',
      "null",
    ];
    const items = payloads.map((payload) => `{"queue":"q/%?","payload":${payload}}`);
    const response = await fetch(`http://${HOST}:${a!.replica.port}/api/v1/push`, {
      method: "POST",
      body: `{"items":[${items.join(",")}]}`,
    });
    assert.equal(response.status, 201);
    await response.body?.cancel();
    const path = `/api/v1/pop/queue/${encodeURIComponent("q/%?")}`;
    const popped = await (await fetch(`http://${HOST}:${b!.replica.port}${path}`)).text();
    for (const payload of payloads) assert(popped.includes(`,"data":${payload},`), payload);
  });
});

Deno.test("a replica outlives a crash of PostgreSQL, and so do the pops parked on it", async () => {
  const server: EmbeddedPostgres = await startEmbeddedPostgres();
  try {
    const popWait = { initialMs: 50, threshold: 3, multiplier: 2, maxMs: 500 };
    const [a, b] = await startNodes(["a", "b"], server.url, popWait);
    try {
      const [reply] = await b!.park("q", 1);
      await server.crash();
      await until(async () => (await a!.call("/health")).status === 503);
      for (const refused of [await a!.push("q", "p"), await a!.pop("q")]) {
        assert.equal(refused.status, 503);
        assert.equal(typeof refused.body.error, "string");
      }
      assert.equal((await a!.call("/status")).status, 200);
      await server.restart();
      await until(async () => (await a!.call("/health")).status === 200);
      await until(async () => (await a!.push("q", "p")).status === 201);
      assert.equal((await reply!).status, 200);
    } finally {
      await Promise.all([a!.replica.close(), b!.replica.close()]);
    }
  } finally {
    await server.stop();
  }
});

Deno.test("with autoAck, what is left of a partition wakes the pop that waits for it alone", async () => {
  await withNodes(["a", "b"], async (a, b) => {
    const any = b!.pop("q", "wait=true&autoAck=true&batch=1");
    await until(async () => (await b!.waker())["parked"] === 1);
    const only = b!.call("/api/v1/pop/queue/q/partition/a?wait=true");
    await until(async () => (await b!.waker())["parked"] === 2);
    await a!.push("q", "a", "a", "b");
    assert.equal((await any).status, 200);
    assert.equal((await only).body.partition, "a");
    assert.equal((await b!.waker())["poll_queries"], 0);
  });
});
