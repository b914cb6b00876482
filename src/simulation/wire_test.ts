import assert from "node:assert/strict";
import recorded from "../protocol/testdata/frames.json" with { type: "json" };
import { frameBytes, readHello, textsOfFrame, TYPE, type WireFrame, WireReader } from "./wire.ts";

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g)!, (digits) => parseInt(digits, 16));
}

function frame(type: number, payload: unknown): WireFrame {
  const text = typeof payload === "string" ? payload : JSON.stringify(payload);
  return new WireReader().push(frameBytes(type, text))[0]!;
}

Deno.test("recorded frames are read, whole and one byte at a time", () => {
  for (const { hex, type, payload } of recorded.frames) {
    const bytes = bytesOf(hex);
    const slow = new WireReader();
    const slowly = Array.from(bytes, (byte) => slow.push(Uint8Array.of(byte))).flat();
    for (const frames of [new WireReader().push(bytes), slowly]) {
      assert.equal(frames.length, 1);
      assert.equal(frames[0]?.type, type);
      assert.deepEqual(JSON.parse(new TextDecoder().decode(frames[0]?.payload)), payload);
    }
  }
});

Deno.test("a recorded HELLO is believed under its secret alone", () => {
  const hellos = recorded.frames.filter(({ type }) => type === TYPE.hello);
  assert.ok(hellos.length > 0);
  for (const { payload, secret } of hellos) {
    const { server_id, nonce } = payload as { server_id: string; nonce: string };
    const hello = frame(TYPE.hello, payload);
    assert.deepEqual(readHello(hello, secret ?? ""), { serverId: server_id, nonce });
    assert.equal(readHello(hello, "another secret"), null);
  }
});

for (const length of [0, 0x01000001]) {
  Deno.test(`a stream that announces a length of ${length} is broken`, () => {
    const reader = new WireReader();
    reader.push(frameBytes(TYPE.hello, "{}"));
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, length);
    assert.deepEqual(reader.push(bytes), []);
    assert.equal(reader.isBroken, true);
  });
}

Deno.test("texts tell items apart by all that they say, and leave unusable ones out", () => {
  const items = [
    { queue: "q" },
    { queue: "q", partition: "p", tenant: "00000000-0000-0000-0000-000000000001" },
    { queue: "q", tenant: "0A0B0C0D-0000-4000-8000-00000000000E", group: "g" },
    { queue: "" },
    { queue: "q", partition: 1 },
    7,
  ];
  assert.deepEqual(textsOfFrame(frame(TYPE.dirtyBatch, { items })), [
    "5 q//?/",
    "5 q/p//",
    "5 q//0a0b0c0d-0000-4000-8000-00000000000e/g",
  ]);
  assert.deepEqual(textsOfFrame(frame(TYPE.available, items[1])), ["1 q/p//"]);
  assert.deepEqual(textsOfFrame(frame(TYPE.maintenance, { enabled: false })), ["40 false"]);
  assert.deepEqual(textsOfFrame(frame(TYPE.maintenance, { enabled: 1 })), []);
  assert.deepEqual(textsOfFrame(frame(TYPE.availableBatch, "not JSON")), []);
  assert.deepEqual(textsOfFrame(frame(99, { queue: "q" })), []);
});
