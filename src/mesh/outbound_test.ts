import assert from "node:assert/strict";
import { encodeHex } from "../protocol/hex.ts";
import { FRAME_TYPE } from "../protocol/frame.ts";
import { RawListener } from "../simulation/raw_peer.ts";
import {
  createTestMac,
  framesIn,
  payloadOf,
  SECRET,
  TestMesh,
  type TestNode,
} from "../testing/test_mesh.ts";

const PORT = 6633;

/** A node `a` with one peer `b`, where a test listens by hand. */
async function withRawPeer(mesh: TestMesh, changes: Parameters<TestMesh["node"]>[2] = {}) {
  const listener = await RawListener.bind(mesh.network.host("b"), PORT);
  const node = await mesh.node("a", ["b"], changes);
  await mesh.pass(100);
  return { node, listener };
}

function hint(queue: string) {
  return { type: "message_available", items: [{ queue }] } as const;
}

/** Asks for distinct frames, few enough at a time for a peer that reads to keep up. */
async function fill(mesh: TestMesh, node: TestNode, count: number) {
  for (let index = 0; index < count; index++) {
    node.mesh.broadcast({ type: "queue_config_set", queue: `q${index}` });
    if (index % 20 === 0) await mesh.pass(5);
  }
  await mesh.pass(5);
}

Deno.test("the first frame is a HELLO, signed over its nonce's text (HSK-1, HSK-2)", async () => {
  await using mesh = new TestMesh();
  const { listener } = await withRawPeer(mesh);
  const [hello, ...others] = framesIn(listener.peers[0]!.received);
  assert.equal(hello?.type, FRAME_TYPE.HELLO);
  const { server_id, nonce, mac } = payloadOf(hello);
  assert.equal(server_id, "a");
  assert.match(String(nonce), /^[0-9a-f]{32}$/);
  assert.equal(mac, encodeHex(await createTestMac(SECRET)!(String(nonce))));
  assert.deepEqual(others, []);
});

Deno.test("in open mode the mac is empty (HSK-2)", async () => {
  await using mesh = new TestMesh();
  const { listener } = await withRawPeer(mesh, { secret: "" });
  assert.equal(payloadOf(framesIn(listener.peers[0]!.received)[0]).mac, "");
});

Deno.test("each connection has a fresh nonce (HSK-1)", async () => {
  await using mesh = new TestMesh();
  const { listener } = await withRawPeer(mesh);
  listener.peers[0]!.close();
  await mesh.pass(1000);
  const nonces = listener.peers.map((peer) => payloadOf(framesIn(peer.received)[0]).nonce);
  assert.equal(nonces.length, 2);
  assert.notEqual(nonces[0], nonces[1]);
});

Deno.test("heartbeats go out at their interval and count as sent (SND-5, SND-6)", async () => {
  await using mesh = new TestMesh();
  const { node, listener } = await withRawPeer(mesh);
  await mesh.pass(3000);
  const frames = framesIn(listener.peers[0]!.received).slice(1);
  assert.equal(frames.length, 3);
  for (const frame of frames) {
    assert.equal(frame.type, FRAME_TYPE.HEARTBEAT);
    assert.deepEqual(payloadOf(frame), { server_id: "a" });
  }
  assert.equal(node.stats().messages_sent, 3);
});

Deno.test("a refusing port is dialled at intervals that double up to the cap (TOP-4)", async () => {
  await using mesh = new TestMesh();
  mesh.network.host("b");
  const attempts: number[] = [];
  mesh.network.observer = { dialling: () => attempts.push(mesh.network.clock.now()) };
  await mesh.node("a", ["b"]);
  await mesh.pass(40_000);
  const waits = attempts.slice(1).map((time, index) => time - attempts[index]!);
  const bases = [250, 500, 1000, 2000, 4000, 5000, 5000];
  for (const [index, base] of bases.entries()) {
    const wait = waits[index]!;
    // Two milliseconds are the refusal's own way.
    assert(wait >= base * 0.8 && wait <= base + 2, `wait ${index}: ${wait} ms for ${base} ms`);
  }
});

Deno.test("the backoff goes on where connections end before they proved themselves", async () => {
  await using mesh = new TestMesh();
  const listener = await RawListener.bind(mesh.network.host("b"), PORT);
  const opened: number[] = [];
  mesh.network.observer = { opened: () => opened.push(mesh.network.clock.now()) };
  await mesh.node("a", ["b"]);
  for (let turn = 0; turn < 6; turn++) {
    while (listener.peers.length === turn) await mesh.pass(10);
    listener.peers[turn]!.close();
  }
  const waits = opened.slice(1).map((time, index) => time - opened[index]!);
  for (const [index, base] of [250, 500, 1000, 2000, 4000].entries()) {
    assert(waits[index]! >= base * 0.8 && waits[index]! <= base + 30, `${waits}`);
  }
});

Deno.test("the backoff starts over after a connection that lasted longer than its cap", async () => {
  await using mesh = new TestMesh();
  const { node, listener } = await withRawPeer(mesh);
  listener.peers[0]!.close();
  await mesh.pass(300);
  listener.peers[1]!.close();
  await mesh.pass(600);
  assert.equal(listener.peers.length, 3);
  await mesh.pass(6000);
  listener.peers[2]!.close();
  await mesh.pass(260);
  assert.equal(listener.peers.length, 4);
  assert.equal(node.stats().peers[0]?.connected, true);
});

Deno.test("a connection that ends right after the HELLO is reported as a suspicion", async () => {
  await using mesh = new TestMesh();
  const { node, listener } = await withRawPeer(mesh);
  listener.peers[0]!.close();
  await mesh.pass(50);
  const [peer] = node.stats().peers;
  assert.equal(peer?.connected, false);
  assert.match(peer?.last_error ?? "", /soon after the HELLO: do both .* QUEEN_SYNC_SECRET/);
  await mesh.pass(300);
  assert.match(node.stats().peers[0]?.last_error ?? "", /QUEEN_SYNC_SECRET/);
  await mesh.pass(6000);
  assert.equal(node.stats().peers[0]?.last_error, null);
});

Deno.test("a peer that refuses every HELLO is not announced as connected again and again", async () => {
  await using mesh = new TestMesh();
  const listener = await RawListener.bind(mesh.network.host("b"), PORT);
  const node = await mesh.node("a", ["b"]);
  for (let turn = 0; turn < 8; turn++) {
    while (listener.peers.length === turn) await mesh.pass(10);
    listener.peers[turn]!.close();
  }
  await mesh.pass(10);
  assert.equal(node.log.filter((line) => line.message === "peer is connected").length, 1);
  assert.equal(node.log.filter((line) => line.message === "peer is not connected").length, 1);
  while (listener.peers.length === 8) await mesh.pass(10);
  await mesh.pass(7000);
  assert.equal(node.log.at(-1)?.message, "peer is connected");
});

Deno.test("every address that a name yields is tried (TOP-3)", async () => {
  await using mesh = new TestMesh();
  const host = mesh.network.host("b", ["10.1.0.1", "10.1.0.2"]);
  const listener = new RawListener(
    await host.runtime.network.listen({ port: PORT, hostname: "10.1.0.2" }),
  );
  const node = await mesh.node("a", ["b"]);
  await mesh.pass(100);
  assert.equal(listener.peers.length, 1);
  assert.equal(node.stats().peers[0]?.resolved_ip, "10.1.0.2");
});

Deno.test("an address that does not answer leaves time for the next (TOP-3)", async () => {
  await using mesh = new TestMesh();
  const listener = await RawListener.bind(mesh.network.host("b"), PORT);
  mesh.network.setName("b", ["10.9.9.9", ...mesh.network.host("b").addresses]);
  await mesh.node("a", ["b"]);
  await mesh.pass(2600);
  assert.equal(listener.peers.length, 1);
});

Deno.test("a name is resolved again at each dial (TOP-3)", async () => {
  await using mesh = new TestMesh();
  mesh.network.setName("b", "failing");
  const node = await mesh.node("a", ["b"]);
  await mesh.pass(100);
  assert.match(node.stats().peers[0]?.last_error ?? "", /dial failed/);
  const listener = await RawListener.bind(mesh.network.host("c"), PORT);
  mesh.network.setName("b", mesh.network.host("c").addresses);
  await mesh.pass(1000);
  assert.equal(listener.peers.length, 1);
});

Deno.test("a name service that hangs, and a host that does not answer, are given up after 5 s", async () => {
  await using mesh = new TestMesh();
  mesh.network.setName("b", "hanging");
  mesh.network.setName("c", ["10.9.9.9"]);
  const node = await mesh.node("a", ["b", "c"]);
  await mesh.pass(4999);
  assert.deepEqual(node.stats().peers.map((peer) => peer.state), ["dialling", "dialling"]);
  await mesh.pass(2);
  for (const peer of node.stats().peers) {
    assert.equal(peer.state, "waiting");
    assert.match(peer.last_error ?? "", /no answer within 5000 ms/);
  }
});

Deno.test("what is meant for a peer that is down is dropped, counted, and never sent (TOP-5)", async () => {
  await using mesh = new TestMesh();
  mesh.network.host("b");
  const node = await mesh.node("a", ["b"]);
  await mesh.pass(100);
  node.mesh.broadcast({ type: "maintenance_mode", enabled: true });
  node.mesh.broadcast(hint("stale"));
  await mesh.pass(1);
  assert.equal(node.stats().messages_dropped, 2);
  const listener = await RawListener.bind(mesh.network.host("b"), PORT);
  await mesh.pass(400);
  node.mesh.broadcast(hint("fresh"));
  await mesh.pass(100);
  const frames = framesIn(listener.peers[0]!.received).slice(1);
  assert.deepEqual(frames.map((frame) => payloadOf(frame).queue), ["fresh"]);
});

Deno.test("what waited for a connection that ended is dropped, not sent on the next (TOP-5)", async () => {
  await using mesh = new TestMesh({ capacityBytes: 1024 });
  const { node, listener } = await withRawPeer(mesh);
  mesh.network.host("b").process.stall();
  for (let index = 0; index < 100; index++) {
    node.mesh.broadcast(hint(`stale-${index}`));
    await mesh.pass(1);
  }
  const { queued = 0 } = node.stats().peers[0]!;
  assert(queued > 50, `queued: ${queued}`);
  mesh.network.lose(mesh.network.between("a", "b")[0]!, { how: "reset" });
  await mesh.pass(10);
  mesh.network.host("b").process.unstall();
  const [peer] = node.stats().peers;
  assert.equal(peer?.queued, 0);
  assert.equal(peer?.messages_dropped, queued);
  assert.equal(peer?.messages_sent, 100 - queued);
  await mesh.pass(400);
  assert.equal(listener.peers.length, 2);
  assert.deepEqual(framesIn(listener.peers[1]!.received).map((frame) => frame.type), [
    FRAME_TYPE.HELLO,
  ]);
});

Deno.test("a full queue drops what comes, and nothing else (SND-1, SND-2)", async () => {
  await using mesh = new TestMesh({ capacityBytes: 1024 });
  const { node, listener } = await withRawPeer(mesh, { deadThresholdMs: 60_000 });
  mesh.network.host("b").process.stall();
  const asked = 3000;
  await fill(mesh, node, asked);
  const peer = node.stats().peers[0]!;
  assert.equal(peer.queued, 1024);
  assert.equal(peer.messages_sent + peer.messages_dropped, asked - 1024);
  mesh.network.host("b").process.unstall();
  await mesh.pass(500);
  const queues = framesIn(listener.peers[0]!.received).map((frame) => payloadOf(frame).queue);
  const arrived = queues.filter((queue) => queue !== undefined);
  assert.deepEqual(arrived, Array.from(arrived, (_, index) => `q${index}`));
  const after = node.stats().peers[0]!;
  assert.equal(after.queued, 0);
  assert.equal(arrived.length + after.messages_dropped, asked);
});

Deno.test("no heartbeat is asked for behind a full queue", async () => {
  await using mesh = new TestMesh({ capacityBytes: 1024 });
  const { node } = await withRawPeer(mesh, { deadThresholdMs: 60_000 });
  mesh.network.host("b").process.stall();
  await fill(mesh, node, 3000);
  const { messages_asked } = node.stats().peers[0]!;
  await mesh.pass(10_000);
  assert.equal(node.stats().peers[0]?.messages_asked, messages_asked);
});

Deno.test("a peer that takes no byte for the dead threshold is disconnected and dialled again", async () => {
  await using mesh = new TestMesh({ capacityBytes: 1024 });
  const { node, listener } = await withRawPeer(mesh);
  mesh.network.host("b").process.stall();
  for (let index = 0; index < 100; index++) {
    node.mesh.broadcast({ type: "queue_config_set", queue: `q${index}` });
  }
  await mesh.pass(4990);
  assert.equal(node.stats().peers[0]?.connected, true);
  await mesh.pass(20);
  const [peer] = node.stats().peers;
  assert.equal(peer?.connected, false);
  // A peer that stalls has not refused the secret.
  assert.equal(peer?.last_error, "the peer took no byte for 5000 ms");
  assert.equal(peer!.messages_sent + peer!.messages_dropped, peer!.messages_asked);
  mesh.network.host("b").process.unstall();
  await mesh.pass(1000);
  assert.equal(listener.peers.length, 2);
});

Deno.test("an idle connection is no stalled one", async () => {
  await using mesh = new TestMesh();
  const { node, listener } = await withRawPeer(mesh, { heartbeatMs: 100_000, deadThresholdMs: 10 });
  node.mesh.broadcast(hint("orders"));
  await mesh.pass(50_000);
  assert.equal(listener.peers.length, 1);
  assert.equal(node.stats().peers[0]?.connected, true);
});

Deno.test("what the kernel took counts as sent, although the connection ended at that moment", async () => {
  await using mesh = new TestMesh({ capacityBytes: 1000 });
  const taken: number[] = [];
  mesh.network.observer = { taken: (_, bytes) => void taken.push(...bytes) };
  const { node, listener } = await withRawPeer(mesh);
  mesh.network.host("b").process.stall();
  for (let count = 0; count < 100; count++) {
    node.mesh.broadcast({ type: "queue_config_set", queue: `q${count}` });
  }
  await mesh.pass(100);
  // The news of the room and of the end arrive together.
  const takenBefore = taken.length;
  mesh.network.host("b").process.unstall();
  listener.peers[0]!.close();
  await mesh.pass(5);
  assert(taken.length > takenBefore);
  const [peer] = node.stats().peers;
  assert.equal(peer?.connected, false);
  assert.equal(peer.queued, 0);
  assert.equal(peer.messages_sent, framesIn(Uint8Array.from(taken)).length - 1);
  assert.equal(peer.messages_sent + peer.messages_dropped, 100);
});

Deno.test("one peer that does not read costs the others nothing (SND-3)", async () => {
  await using mesh = new TestMesh({ capacityBytes: 4096 });
  const slow = await RawListener.bind(mesh.network.host("b"), PORT);
  const good = await RawListener.bind(mesh.network.host("c"), PORT);
  const node = await mesh.node("a", ["b", "c"], { deadThresholdMs: 60_000 });
  await mesh.pass(100);
  mesh.network.host("b").process.stall();
  await fill(mesh, node, 3000);
  await mesh.pass(100);
  const [blocked, served] = node.stats().peers;
  assert.equal(slow.peers.length, 1);
  assert(blocked!.messages_dropped > 1000);
  assert.equal(served?.messages_dropped, 0);
  assert.equal(framesIn(good.peers[0]!.received).length, 1 + 3000);
});

Deno.test("all that waits for a peer leaves in one write", async () => {
  await using mesh = new TestMesh();
  const { node } = await withRawPeer(mesh);
  const writes: number[] = [];
  mesh.network.observer = { taken: (_, bytes) => writes.push(bytes.length) };
  for (let index = 0; index < 500; index++) {
    node.mesh.broadcast({ type: "queue_config_set", queue: `q${index}` });
  }
  await mesh.pass(10);
  assert.equal(node.stats().messages_sent, 500);
  assert.equal(writes.length, 1);
});

Deno.test("what a peer writes on a dialled connection is read and dropped", async () => {
  await using mesh = new TestMesh();
  const { node, listener } = await withRawPeer(mesh);
  await listener.peers[0]!.send(new Uint8Array(10_000));
  await mesh.pass(100);
  assert.equal(node.stats().peers[0]?.connected, true);
  assert.deepEqual(node.heard, []);
});

Deno.test("closing while a dial, a look-up or a write is under way leaves nothing behind", async () => {
  await using mesh = new TestMesh({ capacityBytes: 1024 });
  await RawListener.bind(mesh.network.host("d"), PORT);
  mesh.network.setName("b", "hanging");
  mesh.network.setName("c", ["10.9.9.9"]);
  const node = await mesh.node("a", ["b", "c", "d"]);
  await mesh.pass(100);
  mesh.network.host("d").process.stall();
  for (let index = 0; index < 100; index++) {
    node.mesh.broadcast({ type: "queue_config_set", queue: `q${index}` });
  }
  await mesh.pass(10);
  await node.mesh.close();
  const { process } = mesh.network.host("a");
  assert.deepEqual([process.timers, process.sockets], [0, 0]);
  const states = node.stats().peers.map((peer) => peer.state);
  assert.deepEqual(states, ["closed", "closed", "closed"]);
});

Deno.test("a peer that takes no byte of the HELLO, or breaks off in it, is dialled again", async () => {
  await using mesh = new TestMesh({ capacityBytes: 32 });
  const listener = await RawListener.bind(mesh.network.host("b"), PORT);
  const node = await mesh.node("a", ["b"]);
  mesh.network.host("b").process.stall();
  await mesh.pass(1000);
  assert.equal(node.stats().peers[0]?.state, "greeting");
  node.mesh.broadcast(hint("too early"));
  mesh.network.lose(mesh.network.between("a", "b")[0]!, { how: "reset" });
  await mesh.pass(10);
  const [peer] = node.stats().peers;
  assert.deepEqual([peer?.state, peer?.messages_dropped], ["waiting", 1]);
  await mesh.pass(1000);
  assert.equal(node.stats().peers[0]?.state, "greeting");
  await mesh.pass(5000);
  assert.equal(node.stats().peers[0]?.last_error, "the peer took no byte for 5000 ms");
  mesh.network.host("b").process.unstall();
  await mesh.pass(2000);
  assert.equal(node.stats().peers[0]?.connected, true);
  assert.equal(listener.peers.length, 3);
});
