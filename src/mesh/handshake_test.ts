import assert from "node:assert/strict";
import { FrameDecoder } from "../protocol/frame.ts";
import { buildHello } from "../protocol/hello.ts";
import { Handshake } from "./handshake.ts";
import { createTestMac } from "../testing/test_mesh.ts";

async function helloFrame(nonce: string, secret = "s") {
  const decoder = new FrameDecoder();
  decoder.push(await buildHello({ serverId: "b", nonce, mac: createTestMac(secret) }));
  return decoder.next()!;
}

function handshake(secret = "s") {
  return { handshake: new Handshake({ mac: createTestMac(secret) }) };
}

const nonceOf = (number: number) => number.toString(16).padStart(32, "0");

Deno.test("an own nonce is known as this node's own, by the peer that it was meant for", async () => {
  const { handshake: own } = handshake();
  own.noteOwn(0, nonceOf(1));
  own.noteOwn(1, nonceOf(2));
  assert.deepEqual(await own.judge(await helloFrame(nonceOf(2))), { kind: "self", peer: 1 });
});

for (const secret of ["s", ""]) {
  const mode = secret === "" ? "in open mode" : "with a secret";
  Deno.test(`${mode} an own nonce of an earlier connection is refused`, async () => {
    const { handshake: own } = handshake(secret);
    own.noteOwn(0, nonceOf(1));
    own.noteOwn(0, nonceOf(2));
    assert.equal((await own.judge(await helloFrame(nonceOf(1), secret))).kind, "refused");
    assert.equal((await own.judge(await helloFrame(nonceOf(2), secret))).kind, "self");
  });
}

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
