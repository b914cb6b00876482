import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createDecipheriv } from "node:crypto";
import { createCipher } from "./aes_gcm_cipher.ts";
import type { SpoolOptions } from "./spool_options.ts";
import { SpoolWorld } from "./testing/spool_world.ts";

const KEY = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OTHER = KEY.replace("00", "ff");

const text = new TextEncoder().encode("a message");

Deno.test("what is sealed opens again, and looks different each time", async () => {
  const cipher = await createCipher(KEY.toUpperCase());
  const [one, two] = [await cipher.seal(text), await cipher.seal(text)];
  assert.notDeepEqual(one, two);
  assert.equal(one.length, text.length + cipher.overheadBytes);
  for (const sealed of [one, two]) assert.deepEqual(await cipher.open(sealed), text);
  const empty = new Uint8Array(0);
  assert.deepEqual(await cipher.open(await cipher.seal(empty)), empty);
});

Deno.test("another AES-256-GCM opens it: a nonce of 12 bytes, the text, a tag of 16", async () => {
  const sealed = await (await createCipher(KEY)).seal(text);
  const decipher = createDecipheriv("aes-256-gcm", Buffer.from(KEY, "hex"), sealed.slice(0, 12));
  decipher.setAuthTag(sealed.slice(-16));
  const plain = [decipher.update(sealed.slice(12, -16)), decipher.final()];
  assert.deepEqual(new Uint8Array(Buffer.concat(plain)), text);
});

Deno.test("nothing opens with another key, or changed in any byte, or cut", async () => {
  const cipher = await createCipher(KEY);
  const sealed = await cipher.seal(text);
  await assert.rejects((await createCipher(OTHER)).open(sealed));
  for (let i = 0; i < sealed.length; i++) {
    const changed = sealed.slice();
    changed[i]! ^= 1;
    await assert.rejects(cipher.open(changed), `byte ${i}`);
    await assert.rejects(cipher.open(sealed.slice(0, i)), `${i} bytes`);
  }
});

Deno.test("a key has an id that is always the same, and not part of it", async () => {
  const { keyId } = await createCipher(KEY);
  assert.match(keyId, /^[0-9a-f]{16}$/);
  assert.equal((await createCipher(KEY)).keyId, keyId);
  assert.notEqual((await createCipher(OTHER)).keyId, keyId);
  assert.ok(!KEY.includes(keyId));
});

Deno.test("a key that is not 64 hex digits is refused, and not shown", async () => {
  for (const key of ["", KEY.slice(2), `${KEY}00`, KEY.replace("0", "g"), KEY.slice(1)]) {
    await assert.rejects(
      createCipher(key),
      (error) => error instanceof SyntaxError && (key === "" || !error.message.includes(key)),
    );
  }
});

Deno.test("a spool that is sealed with AES drains with its key, after a restart too", async () => {
  const world = new SpoolWorld();
  const options: Partial<SpoolOptions> = { cipher: await createCipher(KEY) };
  world.isPaused = true;
  const first = await world.open(options);
  const records = world.records(20);
  await Promise.all(records.map((record) => first.append([record])));
  await first.close();
  world.restart();
  world.isPaused = false;
  const second = await world.open(options);
  await second.drained();
  assert.deepEqual(world.sink.stored, records);
  await second.close();
});
