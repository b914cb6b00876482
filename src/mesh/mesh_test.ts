import assert from "node:assert/strict";
import { FRAME_TYPE } from "../protocol/frame.ts";
import { DEFAULT_TENANT } from "../protocol/tenant.ts";
import { RawListener, RawPeer } from "../simulation/raw_peer.ts";
import { framesIn, payloadOf, TestMesh } from "../testing/test_mesh.ts";

const ALL = ["a", "b", "c"];

/** Three nodes, each with every other as a peer. */
async function three(mesh: TestMesh, secret?: string) {
  const changes = secret === undefined ? {} : { secret };
  const nodes = [];
  for (const name of ALL) {
    nodes.push(await mesh.node(name, ALL.filter((other) => other !== name), changes));
  }
  await mesh.pass(1000);
  return nodes;
}

Deno.test("three nodes form a full mesh of two connections a pair (TOP-1, TOP-2)", async () => {
  await using mesh = new TestMesh();
  const nodes = await three(mesh);
  for (const node of nodes) {
    const { peer_count, servers_alive, servers_dead, peers } = node.stats();
    assert.deepEqual([peer_count, servers_alive, servers_dead], [2, 2, 0]);
    assert.deepEqual(peers.map((peer) => peer.connected && peer.resolved), [true, true]);
  }
  assert.equal(mesh.network.connections.size, 6);
});

Deno.test("a message reaches every other node once and is never sent on (TOP-6)", async () => {
  await using mesh = new TestMesh();
  const [a, b, c] = await three(mesh);
  a!.mesh.broadcast({ type: "queue_config_delete", queue: "orders" });
  await mesh.pass(5000);
  const expected = [{
    message: { type: "queue_config_delete", queue: "orders", tenant: DEFAULT_TENANT },
    from: "a",
  }];
  assert.deepEqual(a!.heard, []);
  assert.deepEqual(b!.heard, expected);
  assert.deepEqual(c!.heard, expected);
});

Deno.test("every type of message arrives as it was sent, with its tenant named (TEN-1)", async () => {
  await using mesh = new TestMesh();
  const [a, b] = await three(mesh);
  const tenant = "aabbccdd-1122-3344-5566-778899aabbcc";
  const item = { queue: "orders", partition: "p", tenant };
  const messages = [
    { type: "message_available", items: [item, { ...item, partition: "q" }] },
    { type: "hotlist_dirty", items: [{ ...item, group: undefined }, { ...item, group: "g" }] },
    { type: "queue_config_set", queue: "orders", tenant },
    { type: "maintenance_mode", enabled: true },
    { type: "pop_maintenance_mode", enabled: false },
  ] as const;
  for (const message of messages) a!.mesh.broadcast(message);
  await mesh.pass(10);
  assert.deepEqual(b!.heard.map(({ message }) => message), messages);
});

Deno.test("hints of one turn leave as one frame, identical ones once, in their place in the order", async () => {
  await using mesh = new TestMesh();
  const listener = await RawListener.bind(mesh.network.host("b"), 6633);
  const a = await mesh.node("a", ["b"]);
  await mesh.pass(100);
  for (const queue of ["x", "y", "x", "x"]) {
    a.mesh.broadcast({ type: "message_available", items: [{ queue }] });
  }
  a.mesh.broadcast({ type: "maintenance_mode", enabled: true });
  a.mesh.broadcast({ type: "message_available", items: [{ queue: "z" }] });
  await mesh.pass(10);
  const [, batch, mode, single] = framesIn(listener.peers[0]!.received);
  assert.deepEqual([batch?.type, mode?.type, single?.type], [
    FRAME_TYPE.MESSAGE_AVAILABLE_BATCH,
    FRAME_TYPE.MAINTENANCE_MODE_SET,
    FRAME_TYPE.MESSAGE_AVAILABLE,
  ]);
  const items = payloadOf(batch)["items"] as { queue: string }[];
  assert.deepEqual(items.map((item) => item.queue), ["x", "y"]);
  const [peer] = a.stats().peers;
  assert.deepEqual(
    [peer?.messages_asked, peer?.messages_sent, peer?.messages_coalesced],
    [6, 3, 3],
  );
});

Deno.test("one call with many partitions is one frame and coalesces nothing (WAK-1)", async () => {
  await using mesh = new TestMesh();
  const listener = await RawListener.bind(mesh.network.host("b"), 6633);
  const a = await mesh.node("a", ["b"]);
  await mesh.pass(100);
  const items = Array.from({ length: 1000 }, (_, index) => ({ queue: "q", partition: `${index}` }));
  a.mesh.broadcast({ type: "message_available", items });
  await mesh.pass(10);
  assert.equal(framesIn(listener.peers[0]!.received).length, 2);
  const [peer] = a.stats().peers;
  assert.deepEqual([peer?.messages_asked, peer?.messages_coalesced], [1, 0]);
});

Deno.test("a turn that asks for megabytes of hints does not gather them all", async () => {
  await using mesh = new TestMesh({ capacityBytes: 64 * 1_048_576 });
  const listener = await RawListener.bind(mesh.network.host("b"), 6633);
  const a = await mesh.node("a", ["b"]);
  await mesh.pass(100);
  const partition = "p".repeat(1000);
  for (let index = 0; index < 5000; index++) {
    a.mesh.broadcast({ type: "message_available", items: [{ queue: `${index}`, partition }] });
  }
  assert((a.stats().peers[0]?.queued ?? 0) >= 4);
  await mesh.pass(100);
  const frames = framesIn(listener.peers[0]!.received).slice(1);
  const items = frames.flatMap((frame) => payloadOf(frame)["items"] as unknown[]);
  assert.equal(items.length, 5000);
  assert(frames.every((frame) => frame.payload.length <= 1_048_576));
  const { messages_asked, messages_sent, messages_coalesced } = a.stats().peers[0]!;
  assert.equal(messages_asked, 5000);
  assert.equal(messages_sent + messages_coalesced, 5000);
});

Deno.test("a hint that cannot be sent is refused where it is asked for, and nothing of its call goes out", async () => {
  await using mesh = new TestMesh();
  const [a, b] = await three(mesh);
  const good = { queue: "orders" };
  for (
    const [items, expected] of [
      [[good, { queue: "" }], TypeError],
      [[good, { queue: "orders", tenant: "acme" }], TypeError],
      [[good, { queue: "x".repeat(17_000_000) }], RangeError],
      [undefined as unknown as [], { name: "TypeError", message: /^items must be an array/ }],
    ] as const
  ) {
    assert.throws(() => a!.mesh.broadcast({ type: "message_available", items }), expected);
  }
  await mesh.pass(10);
  assert.deepEqual(b!.heard, []);
});

Deno.test("a node killed is seen dead by the others, and alive again after its return", async () => {
  await using mesh = new TestMesh();
  const [a] = await three(mesh);
  mesh.network.host("c").kill("vanish");
  await mesh.pass(6000);
  assert.deepEqual([a!.stats().servers_alive, a!.stats().servers_dead], [1, 1]);
  mesh.network.host("c").start();
  await mesh.node("c", ["a", "b"]);
  await mesh.pass(12_000);
  assert.deepEqual([a!.stats().servers_alive, a!.stats().servers_dead], [2, 0]);
  assert.deepEqual(a!.stats().peers.map((peer) => peer.connected), [true, true]);
});

Deno.test("a node that lists itself knows it, and leaves itself out of every count", async () => {
  await using mesh = new TestMesh();
  const a = await mesh.node("a", ["a", "b"]);
  await mesh.node("b", ["a", "b"]);
  await mesh.pass(3000);
  const { peer_count, peers, self, servers } = a.stats();
  assert.equal(peer_count, 1);
  assert.deepEqual(peers.map((peer) => peer.host), ["b"]);
  assert.deepEqual(self, [{ host: "a", port: 6633 }]);
  assert.deepEqual(servers.map((server) => server.server_id), ["b"]);
  a.mesh.broadcast({ type: "maintenance_mode", enabled: true });
  await mesh.pass(10);
  assert.deepEqual(a.heard, []);
  assert.equal(a.stats().handshake_failures, 0);
});

Deno.test("a node looks at itself again every minute, since names move", async () => {
  await using mesh = new TestMesh();
  const a = await mesh.node("a", ["elsewhere", "b"]);
  await mesh.node("b", ["a"]);
  mesh.network.setName("elsewhere", mesh.network.host("a").addresses);
  await mesh.pass(3000);
  assert.equal(a.stats().self.length, 1);
  await mesh.pass(60_000);
  assert.equal(a.stats().self.length, 1);
  mesh.network.setName("elsewhere", mesh.network.host("c").addresses);
  const listener = await RawListener.bind(mesh.network.host("c"), 6633);
  await mesh.pass(62_000);
  assert.deepEqual(a.stats().self, []);
  assert.equal(a.stats().peers[0]?.connected, true);
  a.mesh.broadcast({ type: "maintenance_mode", enabled: true });
  await mesh.pass(10);
  const types = framesIn(listener.peers[0]!.received).map((frame) => frame.type);
  assert(types.includes(FRAME_TYPE.MAINTENANCE_MODE_SET), `${types}`);
});

Deno.test("a captured HELLO that is sent back to its node does not cut its peer off", async () => {
  await using mesh = new TestMesh();
  const a = await mesh.node("a", ["b"]);
  const b = await RawListener.bind(mesh.network.host("b"), 6633);
  await mesh.pass(100);
  const captured = b.peers[0]!.received.slice();
  const attacker = await RawPeer.dial(mesh.network.host("x"), { host: "a", port: 6633 });
  await attacker.send(captured);
  await mesh.pass(2000);
  assert.equal(attacker.isEnded, true);
  assert.equal(a.stats().peers[0]?.connected, true);
  // The connection may end by chance while the node looks out for that.
  const again = await RawPeer.dial(mesh.network.host("x"), { host: "a", port: 6633 });
  await again.send(captured);
  await mesh.pass(10);
  b.peers[0]!.close();
  await mesh.pass(500);
  assert.equal(b.peers.length, 2);
  assert.deepEqual(a.stats().self, []);
});

Deno.test("nodes with different secrets do not mesh, and say why", async () => {
  await using mesh = new TestMesh();
  const a = await mesh.node("a", ["b"], { secret: "one" });
  const b = await mesh.node("b", ["a"], { secret: "two" });
  await mesh.pass(20_000);
  a.mesh.broadcast({ type: "maintenance_mode", enabled: true });
  await mesh.pass(100);
  assert.deepEqual(b.heard, []);
  assert(b.stats().handshake_failures > 3);
  assert.match(a.stats().peers[0]?.last_error ?? "", /QUEEN_SYNC_SECRET/);
  assert.equal(a.stats().servers_alive, 0);
});

for (
  const [why, changes] of [
    ["without peers", { peers: [] }],
    ["switched off", { enabled: false }],
  ] as const
) {
  Deno.test(`${why}, nothing is bound and nothing is sent (TOP-7)`, async () => {
    await using mesh = new TestMesh();
    const a = await mesh.node("a", ["b"], changes);
    a.mesh.broadcast({ type: "message_available", items: [{ queue: "orders" }] });
    await mesh.pass(10_000);
    assert.deepEqual(a.mesh.stats(), { enabled: false, reason: "no_peers" });
    assert.equal(mesh.network.host("a").process.sockets, 0);
    assert.equal(mesh.network.clock.pending, 0);
  });
}

Deno.test("a server id must not be empty", async () => {
  await using mesh = new TestMesh();
  await assert.rejects(mesh.node("a", ["b"], { serverId: "" }), TypeError);
});

Deno.test("a closed mesh cannot be started, drops what it is asked for, and closes twice", async () => {
  await using mesh = new TestMesh();
  const [a] = await three(mesh);
  await Promise.all([a!.mesh.close(), a!.mesh.close()]);
  assert.throws(() => a!.mesh.start(), /cannot be started again/);
  a!.mesh.broadcast({ type: "message_available", items: [{ queue: "orders" }] });
  await mesh.pass(10);
  assert.equal(a!.stats().peers[0]?.messages_dropped, 1);
});

Deno.test("a mesh closed while it starts ends up closed", async () => {
  await using mesh = new TestMesh();
  const c = mesh.node("c", ["b"]);
  mesh.close("c");
  await c;
  await mesh.pass(10);
  const { process } = mesh.network.host("c");
  assert.deepEqual([process.timers, process.sockets], [0, 0]);
});

Deno.test("a mesh says which port it has bound, and can be disposed of", async () => {
  await using mesh = new TestMesh();
  const [a] = await three(mesh);
  {
    await using own = a!.mesh;
    assert.equal(own.boundPort, 6633);
  }
  assert.equal(a!.mesh.boundPort, undefined);
  const { process } = mesh.network.host("a");
  assert.deepEqual([process.timers, process.sockets], [0, 0]);
});

Deno.test("a batch without items asks for nothing", async () => {
  await using mesh = new TestMesh();
  const [a] = await three(mesh);
  const before = a!.stats().peers[0]?.messages_asked;
  a!.mesh.broadcast({ type: "message_available", items: [] });
  a!.mesh.broadcast({ type: "hotlist_dirty", items: [] });
  await mesh.pass(1);
  assert.equal(a!.stats().peers[0]?.messages_asked, before);
});
