import assert from "node:assert/strict";
import { FrameDecoder } from "../protocol/frame.ts";
import { buildHello } from "../protocol/hello.ts";
import { VirtualClock } from "../simulation/virtual_clock.ts";
import { Handshake } from "./handshake.ts";
import { createTestMac } from "../testing/test_mesh.ts";

async function helloFrame(nonce: string, secret = "s") {
  const decoder = new FrameDecoder();
  decoder.push(await buildHello({ serverId: "b", nonce, mac: createTestMac(secret) }));
  return decoder.next()!;
}

function handshake(secret = "s") {
  const clock = new VirtualClock();
  return { clock, handshake: new Handshake({ mac: createTestMac(secret), clock }) };
}

const nonceOf = (number: number) => number.toString(16).padStart(32, "0");

Deno.test("an own nonce is known as this node's own, by the peer that it was meant for", async () => {
  const { handshake: own } = handshake();
  own.noteOwn(0, nonceOf(1));
  own.noteOwn(1, nonceOf(2));
  assert.deepEqual(await own.judge(await helloFrame(nonceOf(2))), { kind: "self", peer: 1 });
});

Deno.test("an own nonce that comes back late is a captured one: it is refused", async () => {
  const { handshake: own, clock } = handshake();
  own.noteOwn(0, nonceOf(1));
  own.noteOwn(1, nonceOf(2));
  // A newer one for the same peer.
  own.noteOwn(0, nonceOf(3));
  assert.equal((await own.judge(await helloFrame(nonceOf(1)))).kind, "refused");
  await clock.advance(10_001);
  assert.equal((await own.judge(await helloFrame(nonceOf(2)))).kind, "refused");
});

Deno.test("in open mode a late own nonce proves nothing", async () => {
  const { handshake: own, clock } = handshake("");
  own.noteOwn(0, nonceOf(1));
  await clock.advance(10_001);
  assert.equal((await own.judge(await helloFrame(nonceOf(1), ""))).kind, "accepted");
});

Deno.test("an own nonce with a wrong mac is refused like any other", async () => {
  const { handshake: own } = handshake();
  own.noteOwn(0, nonceOf(1));
  assert.equal((await own.judge(await helloFrame(nonceOf(1), "t"))).kind, "refused");
});

Deno.test("a refused HELLO does not use its nonce up", async () => {
  const { handshake: own } = handshake();
  await own.judge(await helloFrame(nonceOf(1), "t"));
  assert.equal((await own.judge(await helloFrame(nonceOf(1)))).kind, "accepted");
});

Deno.test("a long nonce cannot fill the memory: signed well, it is refused", async () => {
  const { handshake: own } = handshake();
  assert.deepEqual(await own.judge(await helloFrame("0".repeat(257))), {
    kind: "refused",
    reason: "a nonce of 257 characters",
  });
  assert.equal((await own.judge(await helloFrame("0".repeat(256)))).kind, "accepted");
});

Deno.test("in open mode a nonce may come twice", async () => {
  const { handshake: own } = handshake("");
  for (let turn = 0; turn < 2; turn++) {
    assert.equal((await own.judge(await helloFrame(nonceOf(1), ""))).kind, "accepted");
  }
});

Deno.test("16 384 nonces are remembered, and the oldest is forgotten first", async () => {
  const { handshake: own } = handshake();
  const kinds = async (number: number) => (await own.judge(await helloFrame(nonceOf(number)))).kind;
  for (let number = 0; number < 16_384; number++) assert.equal(await kinds(number), "accepted");
  assert.equal(await kinds(0), "refused");
  assert.equal(await kinds(16_384), "accepted");
  assert.equal(await kinds(0), "accepted");
  assert.equal(await kinds(2), "refused");
});
