/**
 * Bytes as hex digits.
 *
 * @module
 */

const HEX = /^(?:[0-9a-f]{2})*$/i;

/** Bytes as lowercase hex digits. */
export function encodeHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** The bytes that hex digits of either case spell, or `undefined` where the text is not hex. */
export function decodeHex(text: string): Uint8Array | undefined {
  if (!HEX.test(text)) return undefined;
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}
