import { decodeHex, encodeHex } from "../../protocol/hex.ts";
import type { Cipher } from "./cipher.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_BYTES = 8;

/**
 * AES-256-GCM by Web Crypto: a random nonce of 12 bytes, the ciphertext, a tag of 16 bytes.
 *
 * Nonces are random, so a key should be changed before it has sealed some 2^36 texts: up to there the
 * odds that two of them share a nonce are below one in 30 million.
 *
 * @param keyHex The key: 64 hex digits.
 * @returns The cipher.
 * @throws {SyntaxError} If `keyHex` is anything else. The message does not show it.
 */
export async function createCipher(keyHex: string): Promise<Cipher> {
  const bytes = decodeHex(keyHex);
  if (bytes?.length !== KEY_BYTES) {
    throw new SyntaxError(
      `A key must be ${2 * KEY_BYTES} hex digits, got ${keyHex.length} characters`,
    );
  }
  const material = bytes as Uint8Array<ArrayBuffer>;
  const key = await crypto.subtle.importKey("raw", material, "AES-GCM", false, [
    "encrypt",
    "decrypt",
  ]);
  return {
    keyId: await keyIdOf(material),
    overheadBytes: NONCE_BYTES + TAG_BYTES,
    seal: (plain) => seal(key, plain),
    open: (sealed) => open(key, sealed),
  };
}

/** The key has 256 random bits, so a hash of it gives nothing away. */
async function keyIdOf(key: Uint8Array): Promise<string> {
  const label = new TextEncoder().encode("queen-mesh key id\0");
  const named = new Uint8Array(label.length + key.length);
  named.set(label);
  named.set(key, label.length);
  const digest = await crypto.subtle.digest("SHA-256", named);
  return encodeHex(new Uint8Array(digest, 0, KEY_ID_BYTES));
}

async function seal(
  key: CryptoKey,
  plain: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const text = new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, plain));
  const sealed = new Uint8Array(NONCE_BYTES + text.length);
  sealed.set(iv);
  sealed.set(text, NONCE_BYTES);
  return sealed;
}

async function open(
  key: CryptoKey,
  sealed: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) {
    throw new RangeError(
      `Sealed bytes are at least ${NONCE_BYTES + TAG_BYTES} long, got ${sealed.length}`,
    );
  }
  const iv = sealed.subarray(0, NONCE_BYTES);
  const text = sealed.subarray(NONCE_BYTES);
  return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, text));
}
