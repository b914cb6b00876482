import assert from "node:assert/strict";
import { Payloads, SealedPayloadError } from "./payloads.ts";
import { createCipher } from "./spool/aes_gcm_cipher.ts";

const KEY = "0123456789abcdef".repeat(4);
const payloads = new Payloads(await createCipher(KEY));

Deno.test("a sealed payload comes back as the same text", async () => {
  for (const text of ['""', String.raw`{"\u0000":"\ud800 é","n":12345678901234567890}`, "1"]) {
    const sealed = await payloads.seal(text);
    assert.equal(await payloads.open(sealed), text);
    assert.match(sealed, /^[0-9a-f]{16}:[A-Za-z0-9+/=]+$/);
    assert.notEqual(await payloads.seal(text), sealed);
  }
});

Deno.test("without a key nothing is sealed or opened, and the reason names the setting", async () => {
  const none = new Payloads(undefined);
  assert.equal(none.hasKey, false);
  await assert.rejects(none.seal("1"), /QUEEN_ENCRYPTION_KEY/);
  await assert.rejects(none.open(await payloads.seal("1")), SealedPayloadError);
});

Deno.test("another key opens nothing, and neither does the same one once a character has changed", async () => {
  const other = new Payloads(await createCipher("f".repeat(64)));
  const sealed = await payloads.seal('"secret"');
  await assert.rejects(other.open(sealed), SealedPayloadError);
  for (let at = 0; at < sealed.length; at++) {
    if (sealed[at] === "=") continue;
    const changed = sealed.slice(0, at) + (sealed[at] === "A" ? "B" : "A") + sealed.slice(at + 1);
    // The last characters of base64 hold bits that stand for nothing.
    const opened = await payloads.open(changed).catch((error: unknown) => error);
    const isSame = opened === '"secret"';
    assert.ok(isSame || opened instanceof SealedPayloadError, `${at}: ${opened}`);
    if (at < sealed.length - 4) assert.ok(opened instanceof SealedPayloadError, `${at}`);
  }
});

Deno.test("what was never sealed cannot be opened", async () => {
  const keyId = (await payloads.seal("1")).split(":")[0];
  for (const text of ["", "1", '{"a":1}', `${keyId}`, `${keyId}:`, `${keyId}:AAAA`]) {
    await assert.rejects(payloads.open(text), SealedPayloadError, text);
  }
});
