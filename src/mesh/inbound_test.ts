import assert from "node:assert/strict";
import { encodeFrame, FRAME_TYPE, FrameDecoder } from "../protocol/frame.ts";
import { buildHello, encodeHello } from "../protocol/hello.ts";
import { RawPeer } from "../simulation/raw_peer.ts";
import { Handshake } from "./handshake.ts";
import { createTestMac, SECRET, TestMesh, type TestNode } from "../testing/test_mesh.ts";

const NODE = { host: "a", port: 6633 };
const WAKE = encodeFrame(FRAME_TYPE.MESSAGE_AVAILABLE, '{"queue":"orders"}');
const HEARTBEAT = encodeFrame(FRAME_TYPE.HEARTBEAT, '{"server_id":"other"}');

let nonces = 0;

/** A good HELLO with a nonce that nobody has used. */
function hello(serverId = "b", secret = SECRET): Promise<Uint8Array> {
  const nonce = (++nonces).toString(16).padStart(32, "0");
  return buildHello({ serverId, nonce, mac: createTestMac(secret) });
}

function join(...parts: Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** A node whose one peer is down, to be dialled by hand. */
function listening(mesh: TestMesh, changes: Parameters<TestMesh["node"]>[2] = {}) {
  return mesh.node("a", ["down"], changes);
}

async function dial(mesh: TestMesh): Promise<RawPeer> {
  return await RawPeer.dial(mesh.network.host("b"), NODE);
}

function queues(node: TestNode): (string | undefined)[] {
  return node.heard.flatMap(({ message }) =>
    message.type === "message_available" ? message.items.map((item) => item.queue) : []
  );
}

Deno.test("what follows a good HELLO is dispatched, from the same segment too (FRM-6)", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const peer = await dial(mesh);
  await peer.send(join(await hello("node-B"), WAKE, WAKE));
  await mesh.pass(10);
  assert.deepEqual(queues(node), ["orders", "orders"]);
  assert.equal(node.heard[0]?.from, "node-B");
  assert.equal(node.stats().messages_received, 2);
});

Deno.test("a stream is understood one byte at a time (FRM-5)", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const peer = await dial(mesh);
  for (const byte of join(await hello(), WAKE)) {
    await peer.send(Uint8Array.of(byte));
    await mesh.pass(1);
  }
  await mesh.pass(10);
  assert.deepEqual(queues(node), ["orders"]);
});

Deno.test("every frame counts as received: heartbeats, unknown and unusable ones, a second HELLO (LIV-4, HSK-9)", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const peer = await dial(mesh);
  await peer.send(join(
    await hello(),
    HEARTBEAT,
    encodeFrame(99, "whatever"),
    encodeFrame(FRAME_TYPE.MESSAGE_AVAILABLE, "not JSON"),
    encodeFrame(FRAME_TYPE.MAINTENANCE_MODE_SET, ""),
    await hello("b", "another secret"),
    WAKE,
  ));
  await mesh.pass(10);
  assert.equal(node.stats().messages_received, 6);
  assert.equal(node.stats().handshake_failures, 0);
  assert.deepEqual(queues(node), ["orders"]);
  assert.equal(peer.isEnded, false);
});

const refusals: [what: string, frame: (mac: string) => Uint8Array][] = [
  ["a frame of another type", () => WAKE],
  ["a HELLO that is no JSON object", () => encodeFrame(FRAME_TYPE.HELLO, "[]")],
  ["a HELLO without a server id", () => encodeFrame(FRAME_TYPE.HELLO, '{"nonce":"0","mac":"0"}')],
  ["an unsigned HELLO", () => encodeHello({ serverId: "b", nonce: "00", mac: "" })],
  ["a HELLO with a wrong mac", (mac) => encodeHello({ serverId: "b", nonce: "00", mac })],
  [
    "a HELLO whose nonce nobody would remember",
    (mac) => encodeHello({ serverId: "b", nonce: "0".repeat(257), mac }),
  ],
  ["a HELLO above 64 KiB", () => encodeFrame(FRAME_TYPE.HELLO, " ".repeat(65_536))],
];

for (const [what, frame] of refusals) {
  Deno.test(`${what} is refused without a word, and nothing behind it counts (HSK-4, HSK-5)`, async () => {
    await using mesh = new TestMesh({ capacityBytes: 1_048_576 });
    const node = await listening(mesh);
    const peer = await dial(mesh);
    await peer.send(join(frame("ab".repeat(32)), await hello(), WAKE));
    await mesh.pass(20);
    assert.equal(peer.isEnded, true);
    assert.equal(peer.received.length, 0);
    assert.deepEqual(node.heard, []);
    const { handshake_failures, signature_failures, messages_received, servers } = node.stats();
    assert.deepEqual([handshake_failures, signature_failures, messages_received], [1, 1, 0]);
    assert.deepEqual(servers, []);
  });
}

for (const length of [0, 16_777_217, 0xffff_ffff]) {
  Deno.test(`a length of ${length} closes the connection, and the node goes on (FRM-2, FRM-3)`, async () => {
    await using mesh = new TestMesh();
    const node = await listening(mesh);
    const bad = Uint8Array.of(length >>> 24, length >>> 16, length >>> 8, length, 1);
    const stranger = await dial(mesh);
    await stranger.send(bad);
    const peer = await dial(mesh);
    await peer.send(join(await hello(), WAKE, bad, WAKE));
    await mesh.pass(20);
    assert.deepEqual([stranger.isEnded, peer.isEnded], [true, true]);
    assert.deepEqual(queues(node), ["orders"]);
    const other = await dial(mesh);
    await other.send(join(await hello(), WAKE));
    await mesh.pass(20);
    assert.deepEqual(queues(node), ["orders", "orders"]);
    assert.equal(node.stats().handshake_failures, 0);
  });
}

Deno.test("a frame of exactly 16 MiB is accepted after the handshake (FRM-4)", async () => {
  await using mesh = new TestMesh({ capacityBytes: 4 * 1_048_576 });
  const node = await listening(mesh);
  const peer = await dial(mesh);
  const head = '{"queue":"';
  const queue = "x".repeat(16_777_216 - 1 - head.length - 2);
  const sending = peer.send(await hello()).then(() =>
    peer.send(encodeFrame(FRAME_TYPE.MESSAGE_AVAILABLE, `${head}${queue}"}`))
  );
  await mesh.pass(2000);
  await sending;
  assert.equal(queues(node)[0]?.length, queue.length);
});

Deno.test("a stream that ends inside a frame dispatches nothing of it (FRM-7)", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const peer = await dial(mesh);
  await peer.send(join(await hello(), WAKE.subarray(0, -1)));
  peer.close();
  await mesh.pass(10);
  assert.deepEqual(node.heard, []);
  assert.equal(node.stats().messages_received, 0);
});

Deno.test("in open mode any HELLO with a server id comes in, a signed one too (HSK-6)", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh, { secret: "" });
  const unsigned = await dial(mesh);
  await unsigned.send(join(encodeFrame(FRAME_TYPE.HELLO, '{"server_id":"b","nonce":7}'), WAKE));
  const signed = await dial(mesh);
  await signed.send(join(await hello("c"), WAKE));
  const nameless = await dial(mesh);
  await nameless.send(join(encodeFrame(FRAME_TYPE.HELLO, "{}"), WAKE));
  await mesh.pass(10);
  assert.deepEqual(node.heard.map(({ from }) => from), ["b", "c"]);
  assert.equal(node.stats().handshake_failures, 1);
});

Deno.test("a HELLO that is not complete after 5 s is refused", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const peer = await dial(mesh);
  await peer.send((await hello()).subarray(0, 20));
  await mesh.pass(4990);
  assert.equal(peer.isEnded, false);
  await mesh.pass(20);
  assert.equal(peer.isEnded, true);
  assert.equal(node.stats().handshake_failures, 1);
});

Deno.test("a connection that ends before its HELLO is complete is no failure (HSK-8)", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const peer = await dial(mesh);
  await peer.send((await hello()).subarray(0, 20));
  peer.close();
  await mesh.pass(10_000);
  assert.equal(node.stats().handshake_failures, 0);
});

Deno.test("with a secret, a HELLO that was accepted before is refused: a replay", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const captured = await hello();
  const first = await dial(mesh);
  await first.send(join(captured, WAKE));
  await mesh.pass(10);
  const second = await dial(mesh);
  await second.send(join(captured, WAKE));
  await mesh.pass(10);
  assert.deepEqual(queues(node), ["orders"]);
  assert.deepEqual([first.isEnded, second.isEnded], [false, true]);
  assert.equal(node.stats().handshake_failures, 1);
});

Deno.test("strangers cannot lock a peer out: at the cap the oldest of them is closed", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const strangers: RawPeer[] = [];
  for (let count = 0; count < 128; count++) strangers.push(await dial(mesh));
  assert.equal(strangers.some((stranger) => stranger.isEnded), false);
  const peer = await dial(mesh);
  await peer.send(join(await hello(), WAKE));
  await mesh.pass(10);
  assert.deepEqual(queues(node), ["orders"]);
  assert.deepEqual(strangers.map((stranger) => stranger.isEnded).indexOf(false), 1);
});

Deno.test("strangers from one address cannot crowd out one from another, however many come", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const slow = await RawPeer.dial(mesh.network.host("c"), NODE);
  const strangers: RawPeer[] = [];
  for (let count = 0; count < 300; count++) strangers.push(await dial(mesh));
  await mesh.pass(10);
  assert.equal(strangers.filter((stranger) => stranger.isEnded).length, 173);
  await slow.send(join(await hello(), WAKE));
  await mesh.pass(10);
  assert.deepEqual(queues(node), ["orders"]);
});

Deno.test("256 peers are let in: at the next the oldest is closed", async () => {
  await using mesh = new TestMesh();
  await listening(mesh);
  const peers: RawPeer[] = [];
  for (let count = 0; count < 258; count++) {
    const peer = await dial(mesh);
    peers.push(peer);
    await peer.send(await hello(`server ${count}`));
    await mesh.pass(5);
  }
  assert.deepEqual(peers.map((peer) => peer.isEnded).indexOf(false), 2);
});

Deno.test("a server id has four connections: at the fifth the oldest is closed", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const other = await dial(mesh);
  await other.send(await hello("c"));
  const peers: RawPeer[] = [];
  for (let count = 0; count < 5; count++) {
    const peer = await dial(mesh);
    peers.push(peer);
    await peer.send(await hello("b"));
    await mesh.pass(5);
  }
  assert.deepEqual(peers.map((peer) => peer.isEnded), [true, false, false, false, false]);
  assert.equal(other.isEnded, false);
  await peers[4]!.send(WAKE);
  await mesh.pass(5);
  assert.deepEqual(queues(node), ["orders"]);
});

Deno.test("a port that cannot be bound is tried again every 5 s, and the node still sends", async () => {
  await using mesh = new TestMesh();
  mesh.network.host("a").bindFailureCode = "EADDRINUSE";
  const node = await listening(mesh);
  const { enabled, running, reason } = node.stats();
  assert.deepEqual({ enabled, running, reason }, {
    enabled: true,
    running: false,
    reason: "bind_failed",
  });
  assert.equal(node.stats().peers[0]?.state, "dialling");
  assert.equal(
    node.log.some(({ level, message }) => level === "warn" && /bound/.test(message)),
    true,
  );
  mesh.network.host("a").bindFailureCode = null;
  await mesh.pass(5001);
  assert.equal(node.stats().running, true);
  assert.equal("reason" in node.stats(), false);
});

Deno.test("an accept that fails does not end the listener", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  mesh.network.host("a").acceptFailures = 3;
  const peer = await dial(mesh);
  await peer.send(join(await hello(), WAKE));
  await mesh.pass(1000);
  assert.deepEqual(queues(node), ["orders"]);
});

Deno.test("what a handler throws is logged, and the connection stays", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh, {
    onMessage: () => {
      throw new Error("no such queue");
    },
  });
  const peer = await dial(mesh);
  await peer.send(join(await hello(), WAKE, WAKE));
  await mesh.pass(10);
  assert.equal(node.heard.length, 2);
  const line = node.log.find(({ level }) => level === "error");
  assert.deepEqual(line?.fields, {
    type: "message_available",
    server: "b",
    reason: "no such queue",
  });
});

Deno.test("what an asynchronous handler rejects with is logged too, and the connection stays", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh, {
    onMessage: () => Promise.reject(new Error("no such queue")),
  });
  const peer = await dial(mesh);
  await peer.send(join(await hello(), WAKE));
  await mesh.pass(10);
  assert.equal(node.log.find(({ level }) => level === "error")?.fields["reason"], "no such queue");
  assert.equal(peer.isEnded, false);
});

Deno.test("nothing is dispatched any more once a handler has closed the mesh", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh, { onMessage: () => void node.mesh.close() });
  const peer = await dial(mesh);
  await peer.send(join(await hello(), WAKE, WAKE, WAKE));
  await mesh.pass(10);
  assert.deepEqual(queues(node), ["orders"]);
  const { running, reason } = node.stats();
  assert.deepEqual([running, reason], [false, undefined]);
});

Deno.test("refusals are logged 20 times a minute, and the next line says how many more there were", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const refused = async () => {
    const peer = await dial(mesh);
    await peer.send(WAKE);
    await mesh.pass(5);
  };
  for (let count = 0; count < 30; count++) await refused();
  const lines = () => node.log.filter(({ message }) => message === "handshake refused");
  assert.equal(lines().length, 20);
  assert.equal(node.stats().handshake_failures, 30);
  await mesh.pass(60_000);
  await refused();
  await refused();
  assert.deepEqual(lines().slice(20).map(({ fields }) => fields["omitted"]), [10, undefined]);
});

Deno.test("the listener never writes (HSK-10), and a heartbeat's own id is ignored", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const peer = await dial(mesh);
  await peer.send(join(await hello("b"), HEARTBEAT, WAKE));
  await mesh.pass(30_000);
  assert.equal(peer.received.length, 0);
  assert.deepEqual(node.stats().servers.map((server) => server.server_id), ["b"]);
});

Deno.test("a peer with this node's own id is let in and warned of", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const peer = await dial(mesh);
  await peer.send(join(await hello("a"), WAKE));
  await mesh.pass(10);
  assert.deepEqual(queues(node), ["orders"]);
  assert.equal(node.log.some(({ message }) => /own server id/.test(message)), true);
});

Deno.test("closing ends strangers and peers alike and leaves nothing behind", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  const stranger = await dial(mesh);
  const peer = await dial(mesh);
  await peer.send(await hello());
  await mesh.pass(10);
  await node.mesh.close();
  await mesh.pass(10);
  assert.deepEqual([stranger.isEnded, peer.isEnded], [true, true]);
  const { process } = mesh.network.host("a");
  assert.deepEqual([process.timers, process.sockets], [0, 0]);
});

Deno.test("unfinished frames that together take too much memory cost the largest its connection", async () => {
  await using mesh = new TestMesh();
  const mebibytes = [50, 60, 40];
  const node = await listening(mesh, {
    parts: {
      createDecoder: () => {
        const bytes = mebibytes.shift()! * 1_048_576;
        return new class extends FrameDecoder {
          override get bufferBytes(): number {
            return bytes;
          }
        }();
      },
    },
  });
  const peers: RawPeer[] = [];
  for (const id of ["b", "c", "d"]) {
    const peer = await dial(mesh);
    peers.push(peer);
    await peer.send(join(await hello(id), WAKE));
    await mesh.pass(10);
  }
  assert.deepEqual(peers.map((peer) => peer.isEnded), [false, true, false]);
  assert.deepEqual(node.heard.map(({ from }) => from), ["b", "c", "d"]);
  const line = node.log.find(({ message }) => /too much memory/.test(message));
  assert.deepEqual([line?.level, line?.fields["server"]], ["warn", "c"]);
});

Deno.test("a HELLO that is still being judged when the node closes lets nobody in", async () => {
  await using mesh = new TestMesh();
  let open = () => {};
  const gate = new Promise<void>((resolve) => open = resolve);
  const node = await listening(mesh, {
    parts: {
      createHandshake: (options) =>
        new class extends Handshake {
          override async judge(...parameters: Parameters<Handshake["judge"]>) {
            await gate;
            return await super.judge(...parameters);
          }
        }(options),
    },
  });
  const peer = await dial(mesh);
  await peer.send(join(await hello(), WAKE));
  await mesh.pass(10);
  const closing = node.mesh.close();
  open();
  await closing;
  assert.deepEqual(node.heard, []);
  assert.deepEqual(node.stats().servers, []);
});

Deno.test("a connection that is reset before its HELLO is no failure, and is told of (HSK-8)", async () => {
  await using mesh = new TestMesh();
  const node = await listening(mesh);
  await dial(mesh);
  mesh.network.lose(mesh.network.between("b", "a")[0]!, { how: "reset" });
  await mesh.pass(10);
  assert.equal(node.stats().handshake_failures, 0);
  assert.equal(node.log.at(-1)?.message, "connection broke");
});
