import assert from "node:assert/strict";
import { type Frame, FRAME_TYPE, FrameDecoder } from "./frame.ts";
import { FrameWriter } from "./frame_writer.ts";
import { createMac, encodeHello, verifyHello } from "./hello.ts";
import { decodeHex } from "./hex.ts";
import { decodeMessage } from "./messages.ts";
import recorded from "./testdata/frames.json" with { type: "json" };

function decode(bytes: Uint8Array): Frame {
  const decoder = new FrameDecoder();
  decoder.push(bytes);
  const frame = decoder.next();
  assert(frame !== undefined && !decoder.partial);
  return frame;
}

function json(frame: Frame): unknown {
  return JSON.parse(new TextDecoder().decode(frame.payload));
}

/** What this implementation sends in the place of a recorded frame. */
function reencode(frame: Frame): Uint8Array {
  const writer = new FrameWriter();
  let bytes = new Uint8Array(0);
  const emit = (frame: Uint8Array) => void (bytes = frame.slice());
  const payload = json(frame) as Record<string, string>;
  if (frame.type === FRAME_TYPE.HELLO) {
    const { server_id: serverId = "", nonce = "", mac = "" } = payload;
    return encodeHello({ serverId, nonce, mac });
  }
  if (frame.type === FRAME_TYPE.HEARTBEAT) {
    writer.heartbeat(payload["server_id"] ?? "", emit);
    return bytes;
  }
  const message = decodeMessage(frame);
  assert(message !== undefined);
  assert.equal(writer.encode(message, emit), 1);
  return bytes;
}

for (const { name, type, hex, payload, secret } of recorded.frames) {
  Deno.test(`recorded frame: ${name}`, async () => {
    const bytes = decodeHex(hex);
    assert(bytes !== undefined);
    const frame = decode(bytes);
    assert.equal(frame.type, type);
    assert.deepEqual(json(frame), payload);

    const ours = decode(reencode(frame));
    assert.equal(ours.type, type);
    assert.deepEqual(decodeMessage(ours), decodeMessage(frame));
    // An empty group is left out: it means the same.
    const expected = name.includes("empty-string group")
      ? { items: payload.items?.map(({ group: _, ...item }) => item) }
      : payload;
    assert.deepEqual(json(ours), expected);

    if (type === FRAME_TYPE.HELLO) {
      const mac = createMac(secret ?? "");
      const verdict = { ok: true, serverId: payload.server_id, nonce: payload.nonce };
      assert.deepEqual(await verifyHello(frame, mac), verdict);
      assert.deepEqual(await verifyHello(ours, mac), verdict);
    }
  });
}

Deno.test("the recorded frames cover every type that is sent", () => {
  const types = new Set(recorded.frames.map(({ type }) => type));
  assert.deepEqual(
    [...types].sort((a, b) => a - b),
    Object.values(FRAME_TYPE).sort((a, b) => a - b),
  );
});
