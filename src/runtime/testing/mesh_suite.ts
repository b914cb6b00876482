/**
 * The mesh over real sockets: what virtual time cannot show of an adapter.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { setImmediate, setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  buildHello,
  type EnabledStats,
  encodeFrame,
  FRAME_TYPE,
  FrameDecoder,
  Mesh,
  type Message,
} from "../../../mod.ts";
import type { MeshConfig, PeerStats, Runtime } from "../../../mod.ts";
import { dial, writeAll } from "./pair.ts";
import type { DefineTest } from "./within.ts";
import { within } from "./within.ts";

const HINTS = 1_000_000;

/** Far less than a million hints would take, were they kept. */
const HEAP_BYTES_MAX = 8 * 1_048_576;

/** Registers the cases for one runtime. */
export function meshSuite(runtime: Runtime, test: DefineTest): void {
  test("two nodes mesh by Web Crypto's signatures, and each hears the other", async () => {
    const ports = await freePorts(runtime, 2);
    const [a, b] = ["a", "b"].map((serverId, index) =>
      startNode(runtime, {
        serverId,
        port: ports[index]!,
        peers: [{ host: "localhost", port: ports[1 - index]! }],
        secret: "s3cr3t",
      })
    );
    try {
      await Promise.all([a!.mesh.start(), b!.mesh.start()]);
      await until(() => [a!, b!].every((node) => node.peer().connected && node.alive() === 1));
      a!.mesh.broadcast({ type: "message_available", items: [{ queue: "to b" }] });
      b!.mesh.broadcast({ type: "maintenance_mode", enabled: true });
      await until(() => a!.heard.length === 1 && b!.heard.length === 1);
      assert.deepEqual(a!.heard, [{ type: "maintenance_mode", enabled: true }]);
      assert.equal(b!.heard[0]?.type, "message_available");
    } finally {
      await Promise.all([a!.mesh.close(), b!.mesh.close()]);
    }
  });

  test("a million hints for a peer that accepts and never reads: none waits, none is kept", async () => {
    const listener = await runtime.network.listen({ port: 0, hostname: "127.0.0.1" });
    const node = startNode(runtime, {
      port: 0,
      peers: [{ host: "127.0.0.1", port: listener.port }],
      // Longer than the test: a stalled peer must not be given up in the middle of it.
      deadThresholdMs: 600_000,
      heartbeatMs: 600_000,
    });
    try {
      await node.mesh.start();
      const connection = await within(listener.accept(), "the node dials");
      assert.ok(connection !== null);
      try {
        await until(() => node.peer().connected);
        let asked = await fill(node);
        const before = node.peer();
        const heapBefore = heapBytes();
        await ask(node, HINTS);
        const heapAfter = heapBytes();
        asked += HINTS;
        const after = node.peer();
        assert.equal(after.messages_asked, asked);
        assert.deepEqual(
          [
            after.messages_dropped - before.messages_dropped,
            after.queued,
            after.messages_coalesced,
          ],
          [HINTS - (after.messages_sent - before.messages_sent), 1024, 0],
        );
        assert.equal(after.messages_sent, before.messages_sent);
        assert.ok(heapAfter - heapBefore < HEAP_BYTES_MAX, `${heapBefore} to ${heapAfter} bytes`);
        // What was counted as sent or queued, and nothing else, arrives once the peer reads.
        const expected = after.messages_sent + after.queued;
        assert.equal(await readFrames(connection, 1 + expected), 1 + expected);
        await until(() => node.peer().queued === 0);
        assert.equal(node.peer().messages_sent + node.peer().messages_dropped, asked);
      } finally {
        connection.close();
      }
    } finally {
      listener.close();
      await node.mesh.close();
    }
  });

  test("a million hints for a peer that is down are all dropped and counted", async () => {
    const [port] = await freePorts(runtime, 1);
    const node = startNode(runtime, { port: 0, peers: [{ host: "127.0.0.1", port: port! }] });
    try {
      await node.mesh.start();
      const heapBefore = heapBytes();
      await ask(node, HINTS);
      const heapAfter = heapBytes();
      assert.deepEqual(
        [node.peer().messages_dropped, node.peer().messages_sent, node.peer().queued],
        [HINTS, 0, 0],
      );
      assert.ok(heapAfter - heapBefore < HEAP_BYTES_MAX, `${heapBefore} to ${heapAfter} bytes`);
    } finally {
      await node.mesh.close();
    }
  });

  test("a slow handler leaves turns to others, however many frames arrived together", async () => {
    let applied = 0;
    let appliedAtTimer: number | undefined;
    const mesh = new Mesh({
      runtime,
      config: {
        serverId: "a",
        hostname: "127.0.0.1",
        port: 0,
        peers: [{ host: "127.0.0.1", port: 1 }],
      },
      onMessage() {
        if (applied++ === 0) runtime.clock.setTimer(1, () => appliedAtTimer = applied);
        const endMs = runtime.clock.now() + 5;
        while (runtime.clock.now() < endMs);
      },
    });
    try {
      await mesh.start();
      const dialled = await dial(runtime, { ip: "127.0.0.1", port: mesh.boundPort! });
      const hello = await buildHello({ serverId: "b", nonce: "1", mac: undefined });
      const wake = encodeFrame(FRAME_TYPE.MESSAGE_AVAILABLE, '{"queue":"orders"}');
      const wakes = Array.from({ length: 100 }, () => [...wake]).flat();
      await writeAll(dialled, Uint8Array.from([...hello, ...wakes]));
      await until(() => applied === 100);
      dialled.close();
      assert.ok(appliedAtTimer! < 100, `the timer came after ${appliedAtTimer} messages`);
    } finally {
      await mesh.close();
    }
  });
}

interface Node {
  readonly mesh: Mesh;
  readonly heard: Message[];
  peer(): PeerStats;
  alive(): number;
}

function startNode(runtime: Runtime, changes: Partial<MeshConfig>): Node {
  const heard: Message[] = [];
  const mesh = new Mesh({
    runtime,
    config: { serverId: "a", hostname: "127.0.0.1", ...changes },
    onMessage: (message) => heard.push(message),
  });
  const stats = (): EnabledStats => {
    const stats = mesh.stats();
    assert.ok(stats.enabled);
    return stats;
  };
  return { mesh, heard, peer: () => stats().peers[0]!, alive: () => stats().servers_alive };
}

/** Asks for hints, each in a turn of its own, so that each is a frame. No call is waited for. */
async function ask(node: Node, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    node.mesh.broadcast({ type: "message_available", items: [{ queue: `orders-${index}` }] });
    await null;
    // Sockets get their turns, as they would between requests.
    if (index % 10_000 === 0) await setImmediate();
  }
}

/** Fills the kernel's buffers and the queue; resolves to the number of hints that it took. */
async function fill(node: Node): Promise<number> {
  const queue = "q".repeat(8192);
  let asked = 0;
  for (let quietTurns = 0; quietTurns < 50;) {
    const { messages_sent } = node.peer();
    for (let index = 0; index < 100; index++) {
      node.mesh.broadcast({ type: "message_available", items: [{ queue }] });
      await null;
    }
    asked += 100;
    await setTimeout(2);
    const { messages_sent: sentNow, queued } = node.peer();
    quietTurns = sentNow === messages_sent && queued === 1024 ? quietTurns + 1 : 0;
  }
  return asked;
}

/** Reads until `count` frames have come, or the stream ends. */
async function readFrames(
  connection: { read(buffer: Uint8Array): Promise<number | null> },
  count: number,
): Promise<number> {
  const decoder = new FrameDecoder();
  let frames = 0;
  while (frames < count) {
    const bytes = await within(connection.read(decoder.space()), `frame ${frames} of ${count}`);
    if (bytes === null) break;
    decoder.filled(bytes);
    while (decoder.next() !== undefined) frames++;
  }
  return frames;
}

async function freePorts(runtime: Runtime, count: number): Promise<number[]> {
  const listeners = [];
  for (let index = 0; index < count; index++) {
    listeners.push(await runtime.network.listen({ port: 0, hostname: "127.0.0.1" }));
  }
  return listeners.map((listener) => {
    listener.close();
    return listener.port;
  });
}

/** What is in use once all that can be collected has been. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function until(condition: () => boolean): Promise<void> {
  const signal = AbortSignal.timeout(20_000);
  while (!condition()) {
    signal.throwIfAborted();
    await setTimeout(5);
  }
}
