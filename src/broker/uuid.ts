import type { Random } from "../mesh/runtime.ts";

/** Makes `count` random UUIDs (version 4), in lower case. */
export function randomUuids(count: number, random: Random): string[] {
  const bytes = random(new Uint8Array(16 * count));
  return Array.from({ length: count }, (_, i) => format(bytes.subarray(16 * i, 16 * (i + 1))));
}

function format(bytes: Uint8Array): string {
  bytes[6] = bytes[6]! & 0x0f | 0x40;
  bytes[8] = bytes[8]! & 0x3f | 0x80;
  let text = "";
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
    text += HEX[bytes[i]!];
  }
  return text;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
