import assert from "node:assert/strict";
import { crc32c } from "./crc32c.ts";

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

Deno.test("the CRC-32C of the published check text is the published sum", () => {
  assert.equal(crc32c(bytesOf("123456789")), 0xe3069283);
});

Deno.test("the CRC-32C of the blocks in RFC 3720 are as given there", () => {
  assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa);
  assert.equal(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8ab43);
  assert.equal(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e);
});

Deno.test("a CRC-32C goes on from the sum of what comes before, wherever the text is cut", () => {
  const bytes = bytesOf("a text that is longer than eight bytes");
  for (let cut = 0; cut <= bytes.length; cut++) {
    assert.equal(crc32c(bytes.subarray(cut), crc32c(bytes.subarray(0, cut))), crc32c(bytes));
  }
});
