import fc from "fast-check";
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { encodeFrame, type Frame, FRAME_TYPE, FrameDecoder } from "./frame.ts";
import { buildHello, createMac, createNonce, encodeHello, verifyHello } from "./hello.ts";

const NONCE = "dc0ecfd2308ac3733674a5b0b1d6ee0a";
const MAC = "1d1f21f0902155a40dfb0bc804da57c42dfb4520763f73f801aac63153f120ed";

function decode(bytes: Uint8Array): Frame {
  const decoder = new FrameDecoder();
  decoder.push(bytes);
  const frame = decoder.next();
  assert(frame !== undefined);
  return frame;
}

/** A HELLO with a payload of any JSON. */
function hello(payload: unknown): Frame {
  return decode(encodeFrame(FRAME_TYPE.HELLO, JSON.stringify(payload)));
}

const signed = { server_id: "node-a", nonce: NONCE, mac: MAC };

Deno.test("a mac is the HMAC-SHA256 of the nonce's text, keyed by the secret's bytes", async () => {
  for (const secret of ["s3cr3t", "pässwörd", "x".repeat(200)]) {
    const mac = createMac(secret);
    assert(mac !== undefined);
    const expected = createHmac("sha256", secret).update(NONCE).digest();
    assert.deepEqual([...await mac(NONCE)], [...expected]);
    assert.deepEqual([...await mac(NONCE)], [...expected], "the key serves again");
  }
  assert.equal(createMac(""), undefined);
});

Deno.test("a nonce is 32 lowercase hex digits of the bytes that it is handed", () => {
  assert.equal(
    createNonce((bytes) => {
      bytes.forEach((_, index) => bytes[index] = index * 17);
      return bytes;
    }),
    "00112233445566778899aabbccddeeff",
  );
  assert.equal(createNonce((bytes) => bytes.fill(1)), "01".repeat(16));
});

Deno.test("a HELLO is signed, or has an empty mac in open mode", async () => {
  const frame = decode(
    await buildHello({ serverId: "node-a", nonce: NONCE, mac: createMac("s3cr3t") }),
  );
  assert.equal(frame.type, FRAME_TYPE.HELLO);
  assert.deepEqual(JSON.parse(new TextDecoder().decode(frame.payload)), signed);
  const open = decode(await buildHello({ serverId: "node-a", nonce: NONCE, mac: undefined }));
  assert.deepEqual(JSON.parse(new TextDecoder().decode(open.payload)), { ...signed, mac: "" });
});

Deno.test("what is built is verified, whatever the id and the secret", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ minLength: 1, unit: "binary" }),
      fc.string({ unit: "binary" }),
      async (serverId, secret) => {
        const mac = createMac(secret);
        const nonce = createNonce((bytes) => crypto.getRandomValues(bytes));
        const frame = decode(await buildHello({ serverId, nonce, mac }));
        assert.deepEqual(await verifyHello(frame, mac), { ok: true, serverId, nonce });
      },
    ),
    { numRuns: 50 },
  );
});

Deno.test("a mac in uppercase is accepted, and unknown keys are ignored", async () => {
  const frame = hello({ ...signed, mac: MAC.toUpperCase(), version: 2, ["__proto__"]: null });
  assert.deepEqual(await verifyHello(frame, createMac("s3cr3t")), {
    ok: true,
    serverId: "node-a",
    nonce: NONCE,
  });
});

Deno.test("a payload is read before verifying waits, since its view does not last", async () => {
  const frame = hello(signed);
  const verdict = verifyHello(frame, createMac("s3cr3t"));
  frame.payload.fill(0);
  assert.equal((await verdict).ok, true);
});

Deno.test("each kind of unusable HELLO is refused with its own reason", async () => {
  const { server_id: _, ...anonymous } = signed;
  const { nonce: __, ...bare } = signed;
  const { mac: ___, ...unsigned } = signed;
  const refusals: [Frame, string][] = [
    [decode(encodeFrame(FRAME_TYPE.HEARTBEAT, JSON.stringify(signed))), "not a HELLO"],
    [decode(encodeFrame(FRAME_TYPE.HELLO, "")), "not a JSON object"],
    [decode(encodeFrame(FRAME_TYPE.HELLO, "{")), "not a JSON object"],
    [decode(encodeFrame(FRAME_TYPE.HELLO, new Uint8Array([0xff, 0xfe]))), "not a JSON object"],
    [decode(encodeFrame(FRAME_TYPE.HELLO, `\ufeff${JSON.stringify(signed)}`)), "not a JSON object"],
    [hello([signed]), "not a JSON object"],
    [hello(null), "not a JSON object"],
    [hello("node-a"), "not a JSON object"],
    [hello(anonymous), "no server_id"],
    [hello({ ...signed, server_id: "" }), "server_id is empty"],
    [hello({ ...signed, server_id: 7 }), "server_id is not a string"],
    [hello({ ...signed, server_id: null }), "server_id is not a string"],
    [hello(bare), "no nonce"],
    [hello({ ...signed, nonce: "" }), "no nonce"],
    [hello({ ...signed, nonce: 7 }), "no nonce"],
    [hello(unsigned), "no mac"],
    [hello({ ...signed, mac: "" }), "no mac"],
    [hello({ ...signed, mac: { hex: MAC } }), "no mac"],
    [hello({ ...signed, mac: MAC.replace("1", "x") }), "not hex"],
    [hello({ ...signed, mac: MAC.slice(1) }), "not hex"],
    [hello({ ...signed, mac: ` ${MAC} ` }), "not hex"],
    [hello({ ...signed, mac: MAC.slice(2) }), "does not match"],
    [hello({ ...signed, mac: `${MAC}00` }), "does not match"],
    [hello({ ...signed, mac: MAC.replace("1", "0") }), "does not match"],
    [hello({ ...signed, mac: MAC.replace(/d$/, "c") }), "does not match"],
    [hello({ ...signed, nonce: NONCE.toUpperCase() }), "does not match"],
  ];
  const mac = createMac("s3cr3t");
  for (const [frame, reason] of refusals) {
    const verdict = await verifyHello(frame, mac);
    assert(!verdict.ok, reason);
    assert(verdict.reason.includes(reason), `${verdict.reason} should say ${reason}`);
    assert.doesNotMatch(verdict.reason, /s3cr3t|1d1f21f0/i);
  }
  assert.equal((await verifyHello(hello(signed), createMac("another"))).ok, false);
});

Deno.test("a mac over the bytes that the nonce spells is refused", async () => {
  const mac = createHmac("sha256", "s3cr3t").update(NONCE, "hex").digest("hex");
  assert.equal((await verifyHello(hello({ ...signed, mac }), createMac("s3cr3t"))).ok, false);
});

Deno.test("open mode takes any nonce and mac but needs the server_id", async () => {
  for (const nonce of [undefined, null, 7, "", {}, []]) {
    const verdict = await verifyHello(hello({ server_id: "node-a", nonce, mac: [] }), undefined);
    assert.deepEqual(verdict, { ok: true, serverId: "node-a", nonce: undefined });
  }
  const verdict = await verifyHello(hello(signed), undefined);
  assert.deepEqual(verdict, { ok: true, serverId: "node-a", nonce: NONCE });
  assert.equal((await verifyHello(hello({ nonce: NONCE, mac: MAC }), undefined)).ok, false);
});

Deno.test("a HELLO to send needs an id and strings", () => {
  const fields = { serverId: "node-a", nonce: NONCE, mac: "" };
  for (const wrong of [{ serverId: "" }, { serverId: 7 }, { nonce: null }, { mac: undefined }]) {
    assert.throws(() => encodeHello({ ...fields, ...wrong } as typeof fields), TypeError);
  }
});
