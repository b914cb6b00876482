import assert from "node:assert/strict";
import type { Connection } from "../mesh/runtime.ts";
import { SimulatedNetwork, type SimulatedNetworkOptions } from "./network.ts";
import { RawListener, RawPeer } from "./raw_peer.ts";
import { settle } from "./virtual_clock.ts";

const PORT = 6633;

/** The state of a promise that is watched from outside. */
interface Watched<T> {
  value?: T;
  error?: unknown;
  isSettled: boolean;
}

function watch<T>(promise: Promise<T>): Watched<T> {
  const watched: Watched<T> = { isSettled: false };
  promise.then(
    (value) => Object.assign(watched, { value, isSettled: true }),
    (error) => Object.assign(watched, { error, isSettled: true }),
  );
  return watched;
}

function codeOf(watched: Watched<unknown>): unknown {
  return (watched.error as { code?: unknown } | undefined)?.code;
}

const NEVER = new AbortController().signal;

/** Two hosts, a listener on b, and one connection from a to it. */
async function connected(options: SimulatedNetworkOptions = {}) {
  const network = new SimulatedNetwork(options);
  const a = network.host("a");
  const b = network.host("b");
  const listener = await RawListener.bind(b, PORT);
  const dialler = await RawPeer.dial(a, { host: "b", port: PORT });
  await network.clock.advance(10);
  const [accepted] = listener.peers;
  assert.ok(accepted);
  return { network, a, b, listener, dialler, accepted, [Symbol.dispose]() {} };
}

function bytesOf(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + seed) & 255);
}

Deno.test("bytes arrive in order, both ways, after the link's delay", async () => {
  const { network, dialler, accepted } = await connected({ delayMs: [5, 5] });
  await dialler.send(bytesOf(100));
  await accepted.send(bytesOf(50, 2));
  await network.clock.advance(4);
  assert.equal(accepted.received.length, 0);
  await network.clock.advance(1);
  assert.deepEqual(accepted.received, bytesOf(100));
  assert.deepEqual(dialler.received, bytesOf(50, 2));
});

Deno.test("each end is told the other's address", async () => {
  const { network, dialler, accepted } = await connected();
  assert.deepEqual(dialler.connection.remote, { ip: network.host("b").addresses[0], port: PORT });
  assert.equal(accepted.connection.remote.ip, network.host("a").addresses[0]);
});

Deno.test("random segmentation, partial writes and delays change no byte, and a seed repeats them", async () => {
  const run = async (seed: number) => {
    const noisy = { seed, delayMs: [1, 40] as const, partialWrites: 0.5, segmentation: 1 };
    const { network, dialler, accepted } = await connected(noisy);
    const sizes: number[] = [];
    network.observer = { read: (_, bytes) => void sizes.push(bytes.length) };
    await dialler.send(bytesOf(10_000));
    await network.clock.advance(1000);
    assert.deepEqual(accepted.received, bytesOf(10_000));
    return sizes;
  };
  const sizes = await run(7);
  assert.ok(sizes.length > 1);
  assert.deepEqual(await run(7), sizes);
  assert.notDeepEqual(await run(8), sizes);
});

Deno.test("a stalled reader makes writes partial and then pending, until it reads on", async () => {
  const { network, b, dialler, accepted } = await connected({ capacityBytes: 1000 });
  b.process.stall();
  assert.equal(await dialler.connection.write(bytesOf(600)), 600);
  assert.equal(await dialler.connection.write(bytesOf(600)), 400);
  const third = watch(dialler.connection.write(bytesOf(600)));
  await network.clock.advance(60_000);
  assert.equal(third.isSettled, false);
  assert.equal(accepted.received.length, 0);
  b.process.unstall();
  await network.clock.advance(10);
  assert.equal(third.value, 600);
  assert.equal(accepted.received.length, 1600);
});

Deno.test("a cut holds bytes and a heal delivers them", async () => {
  const { network, dialler, accepted } = await connected({ delayMs: [5, 5] });
  await dialler.send(bytesOf(10));
  network.cut("a", "b");
  await dialler.send(bytesOf(20));
  await network.clock.advance(60_000);
  assert.equal(accepted.received.length, 0);
  network.heal("a", "b");
  await network.clock.advance(5);
  assert.deepEqual(accepted.received, new Uint8Array([...bytesOf(10), ...bytesOf(20)]));
});

Deno.test("a link that is cut in one direction still carries the other", async () => {
  const { network, dialler, accepted } = await connected();
  network.link("a", "b").cut();
  await dialler.send(bytesOf(10));
  await accepted.send(bytesOf(20));
  await network.clock.advance(100);
  assert.equal(accepted.received.length, 0);
  assert.equal(dialler.received.length, 20);
});

Deno.test("a cut that lasts breaks both ends", async () => {
  const { network, dialler, accepted } = await connected();
  network.cut("a", "b");
  network.timeOut("a", "b");
  await settle();
  assert.match(String(dialler.error), /ETIMEDOUT/);
  assert.match(String(accepted.error), /ETIMEDOUT/);
});

Deno.test("closing ends the other end's stream after the bytes that were taken", async () => {
  const { network, dialler, accepted } = await connected();
  await dialler.send(bytesOf(10));
  dialler.close();
  dialler.close();
  await network.clock.advance(10);
  assert.equal(accepted.received.length, 10);
  assert.equal(accepted.isEnded, true);
  assert.equal(accepted.error, null);
});

Deno.test("closing ends a pending read with null and a pending write with an error", async () => {
  const { b, dialler } = await connected({ capacityBytes: 10 });
  b.process.stall();
  await dialler.send(bytesOf(10));
  const write = watch(dialler.connection.write(bytesOf(1)));
  dialler.close();
  await settle();
  assert.equal(dialler.isEnded, true);
  assert.equal(dialler.error, null);
  assert.equal(codeOf(write), "EPIPE");
  assert.equal(await dialler.connection.read(new Uint8Array(1)), null);
  await assert.rejects(dialler.connection.write(bytesOf(1)), /EPIPE/);
});

Deno.test("writing to an end that has closed brings a reset", async () => {
  const { network, dialler, accepted } = await connected();
  accepted.close();
  await network.clock.advance(10);
  assert.equal(dialler.isEnded, true);
  await dialler.send(bytesOf(1));
  await network.clock.advance(10);
  await assert.rejects(dialler.connection.write(bytesOf(1)), /ECONNRESET/);
});

Deno.test("closing with unread bytes resets the connection", async () => {
  const { network, b, dialler, accepted } = await connected();
  b.process.stall();
  await dialler.send(bytesOf(1));
  await network.clock.advance(10);
  accepted.close();
  await network.clock.advance(10);
  assert.match(String(dialler.error), /ECONNRESET/);
});

for (const isLossy of [false, true]) {
  for (const how of ["end", "reset"] as const) {
    const outcome = isLossy ? "without" : "with";
    Deno.test(`a connection lost by ${how} ends at both ends ${outcome} what was on its way`, async () => {
      const { network, dialler, accepted } = await connected();
      await dialler.send(bytesOf(10));
      network.lose(network.between("a", "b")[0]!, { how, isLossy });
      await network.clock.advance(10);
      assert.equal(accepted.received.length, isLossy ? 0 : 10);
      for (const peer of [dialler, accepted]) {
        assert.equal(peer.isEnded, true);
        assert.equal(peer.error === null, how === "end");
      }
    });
  }
}

Deno.test("a killed process resets its connections and frees its port", async () => {
  const { network, b, dialler, accepted } = await connected();
  b.kill("reset");
  await network.clock.advance(10);
  assert.match(String(dialler.error), /ECONNRESET/);
  assert.equal(accepted.isEnded, false, "the dead learn nothing");
  await assert.rejects(RawPeer.dial(network.host("a"), { host: "b", port: PORT }), /ECONNREFUSED/);
  await RawListener.bind(b, PORT);
  await RawPeer.dial(network.host("a"), { host: "b", port: PORT });
});

Deno.test("a killed process can end its connections in order", async () => {
  const { network, b, dialler } = await connected();
  b.kill("end");
  await network.clock.advance(10);
  assert.equal(dialler.isEnded, true);
  assert.equal(dialler.error, null);
});

Deno.test("a host that vanishes says nothing until it is back, and then resets what is sent to it", async () => {
  const { network, b, dialler } = await connected();
  b.kill("vanish");
  await dialler.send(bytesOf(1));
  const dial = watch(
    network.host("a").runtime.network.connect(
      { ip: b.addresses[0]!, port: PORT },
      { signal: NEVER },
    ),
  );
  await network.clock.advance(60_000);
  assert.equal(dialler.isEnded, false);
  assert.equal(dial.isSettled, false);
  b.start();
  await network.clock.advance(10);
  assert.match(String(dialler.error), /ECONNRESET/);
  assert.equal(codeOf(dial), "ECONNREFUSED");
});

Deno.test("nothing that a killed process waits for is answered and no timer of it fires", async () => {
  const { network, a, dialler } = await connected();
  const process = a.process;
  const read = watch(dialler.connection.read(new Uint8Array(1)));
  network.breaches.length = 0;
  let fired = 0;
  process.runtime.clock.setTimer(5, () => fired++);
  a.kill("reset");
  process.runtime.clock.setTimer(5, () => fired++);
  await network.clock.advance(100);
  assert.equal(fired, 0);
  assert.equal(read.isSettled, false);
  assert.equal(process.timers, 0);
  assert.equal(process.sockets, 0);
});

Deno.test("a port can be bound once, and after it was unbound again", async () => {
  const b = new SimulatedNetwork().host("b");
  const { network } = b.runtime;
  const listener = await network.listen({ port: PORT });
  await assert.rejects(network.listen({ port: PORT }), /EADDRINUSE/);
  listener.close();
  listener.close();
  await network.listen({ port: PORT });
  b.bindFailureCode = "EACCES";
  await assert.rejects(network.listen({ port: 1 }), /EACCES/);
});

Deno.test("port 0 is one that the system chooses", async () => {
  const { network } = new SimulatedNetwork().host("b").runtime;
  const ports = [await network.listen({ port: 0 }), await network.listen({ port: 0 })];
  assert.ok(ports[0]!.port > 0);
  assert.notEqual(ports[0]!.port, ports[1]!.port);
});

Deno.test("a listener that is closed ends a pending accept and resets what waits", async () => {
  const network = new SimulatedNetwork();
  const listener = await network.host("b").runtime.network.listen({ port: PORT });
  const dialler = await RawPeer.dial(network.host("a"), { host: "b", port: PORT });
  listener.close();
  await network.clock.advance(10);
  assert.match(String(dialler.error), /ECONNRESET/);
  assert.equal(await listener.accept(), null);

  const other = await network.host("b").runtime.network.listen({ port: PORT });
  const accept = watch(other.accept());
  other.close();
  await settle();
  assert.equal(accept.value, null);
  assert.equal(network.host("b").process.sockets, 0);
});

Deno.test("an accept can fail without losing the connection that waits", async () => {
  const network = new SimulatedNetwork();
  const b = network.host("b");
  b.acceptFailures = 1;
  const listener = await b.runtime.network.listen({ port: PORT });
  await RawPeer.dial(network.host("a"), { host: "b", port: PORT });
  await assert.rejects(listener.accept(), /EMFILE/);
  assert.ok(await listener.accept());
});

Deno.test("connecting to a port that nobody listens on is refused", async () => {
  const network = new SimulatedNetwork();
  network.host("b").start();
  await assert.rejects(RawPeer.dial(network.host("a"), { host: "b", port: PORT }), /ECONNREFUSED/);
});

Deno.test("a listener bound to one address refuses the others", async () => {
  const network = new SimulatedNetwork();
  const b = network.host("b", ["10.1.0.1", "fd00::1"]);
  await b.runtime.network.listen({ port: PORT, hostname: "10.1.0.1" });
  await RawPeer.dial(network.host("a"), { host: "10.1.0.1", port: PORT });
  await assert.rejects(
    RawPeer.dial(network.host("a"), { host: "fd00::1", port: PORT }),
    /ECONNREFUSED/,
  );
});

Deno.test("an attempt under a cut waits for the heal", async () => {
  const network = new SimulatedNetwork();
  await RawListener.bind(network.host("b"), PORT);
  const a = network.host("a");
  network.cut("a", "b");
  const dial = watch(a.runtime.network.connect(
    { ip: network.host("b").addresses[0]!, port: PORT },
    { signal: NEVER },
  ));
  await network.clock.advance(60_000);
  assert.equal(dial.isSettled, false);
  network.heal("a", "b");
  await network.clock.advance(10);
  assert.ok(dial.value);
});

Deno.test("aborting ends an attempt at once and leaves nothing open on either side", async () => {
  // Before anything arrives, while the grant is on its way back, and where nobody is.
  for (const [ip, waitMs] of [["10.0.0.1", 0], ["10.0.0.1", 1], ["10.9.9.9", 50]] as const) {
    const network = new SimulatedNetwork();
    const b = network.host("b");
    const listener = await RawListener.bind(b, PORT);
    const a = network.host("a");
    const controller = new AbortController();
    const dial = watch(
      a.runtime.network.connect({ ip, port: PORT }, { signal: controller.signal }),
    );
    await network.clock.advance(waitMs);
    assert.equal(dial.isSettled, false);
    controller.abort(new Error("given up"));
    await settle();
    assert.match(String(dial.error), /given up/);
    assert.equal(a.process.sockets, 0);
    await network.clock.advance(100);
    for (const peer of listener.peers) {
      assert.equal(peer.isEnded, true);
      peer.close();
    }
    assert.equal(b.process.sockets, 1, "the listener");
    assert.equal(network.connections.size, 0);
    assert.equal(network.clock.pending, 0);
  }
});

Deno.test("an aborted signal starts nothing", async () => {
  const { runtime, process } = new SimulatedNetwork().host("a");
  const signal = AbortSignal.abort(new Error("too late"));
  await assert.rejects(
    runtime.network.connect({ ip: "10.0.0.1", port: 1 }, { signal }),
    /too late/,
  );
  await assert.rejects(runtime.network.resolve("a", { signal }), /too late/);
  assert.equal(process.sockets, 0);
});

Deno.test("names resolve to all addresses, change, fail and hang", async () => {
  const network = new SimulatedNetwork({ dnsDelayMs: 3 });
  network.host("b", ["fd00::2", "10.0.0.2"]);
  const { runtime, process } = network.host("a");
  const resolve = (name: string, signal = NEVER) =>
    watch(runtime.network.resolve(name, { signal }));
  const both = resolve("b");
  await network.clock.advance(2);
  assert.equal(both.isSettled, false);
  await network.clock.advance(1);
  assert.deepEqual(both.value, ["fd00::2", "10.0.0.2"]);
  network.setName("b", ["10.0.0.9"]);
  const controller = new AbortController();
  const [moved, literal, unknown, local] = ["b", "fd00::7", "c", "localhost"].map((n) =>
    resolve(n)
  );
  network.setName("d", "hanging");
  const hanging = resolve("d", controller.signal);
  await network.clock.advance(60_000);
  assert.deepEqual(moved!.value, ["10.0.0.9"]);
  assert.deepEqual(literal!.value, ["fd00::7"]);
  assert.equal(codeOf(unknown!), "ENOTFOUND");
  assert.deepEqual(local!.value, ["::1", "127.0.0.1"]);
  assert.equal(hanging.isSettled, false);
  assert.equal(process.sockets, 1);
  controller.abort(new Error("given up"));
  await settle();
  assert.match(String(hanging.error), /given up/);
  assert.equal(process.sockets, 0);
});

Deno.test("a loopback address is the host that dials it", async () => {
  const network = new SimulatedNetwork();
  const a = network.host("a");
  const listener = await RawListener.bind(a, PORT);
  const dialler = await RawPeer.dial(a, { host: "127.0.0.1", port: PORT });
  await dialler.send(bytesOf(3));
  await network.clock.advance(10);
  assert.equal(listener.peers[0]?.received.length, 3);
  assert.equal(listener.peers[0]?.connection.remote.ip, "127.0.0.1");
});

Deno.test("what breaks the contract of a connection is recorded", async () => {
  const { network, dialler, b } = await connected({ capacityBytes: 1 });
  const { connection } = dialler;
  b.process.stall();
  const read = (into: Connection) => watch(into.read(new Uint8Array(1)));
  read(connection);
  await connection.write(bytesOf(1));
  watch(connection.write(bytesOf(1)));
  watch(connection.write(bytesOf(1)));
  watch(connection.write(new Uint8Array()));
  assert.deepEqual(network.breaches.map((breach) => breach.replace(/^.*: /, "")), [
    "a second read while one is pending",
    "a second write while one is pending",
    "a second write while one is pending",
    "a write of no bytes",
  ]);
});

Deno.test("when everything is closed nothing is left", async () => {
  const { network, a, b, dialler, listener } = await connected();
  await dialler.send(bytesOf(10));
  dialler.close();
  listener.close();
  await network.clock.advance(100);
  assert.equal(network.connections.size, 0);
  assert.equal(a.process.sockets + b.process.sockets, 0);
  assert.equal(network.clock.pending, 0);
});
