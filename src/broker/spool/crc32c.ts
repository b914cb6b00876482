/** The polynomial of CRC-32C (Castagnoli), bits reversed. */
const POLYNOMIAL = 0x82f63b78;

/** Table `k` takes a byte past `k` further bytes, so that eight bytes go in one step. */
const TABLES = makeTables();

function makeTables(): Uint32Array[] {
  const first = new Uint32Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    first[byte] = crc;
  }
  const tables = [first];
  for (let k = 1; k < 8; k++) {
    tables.push(tables[k - 1]!.map((crc) => (crc >>> 8) ^ first[crc & 0xff]!));
  }
  return tables;
}

const [T0, T1, T2, T3, T4, T5, T6, T7] = TABLES as [
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
  Uint32Array,
];

/**
 * The CRC-32C of `bytes`, from 0 to 2^32 - 1.
 *
 * @param bytes The bytes to sum up.
 * @param before The sum of what comes before them; of nothing by default.
 */
export function crc32c(bytes: Uint8Array, before = 0): number {
  let crc = ~before;
  let i = 0;
  for (const end = bytes.length - 7; i < end; i += 8) {
    crc ^= bytes[i]! | bytes[i + 1]! << 8 | bytes[i + 2]! << 16 | bytes[i + 3]! << 24;
    crc = T7[crc & 0xff]! ^ T6[crc >>> 8 & 0xff]! ^ T5[crc >>> 16 & 0xff]! ^ T4[crc >>> 24]! ^
      T3[bytes[i + 4]!]! ^ T2[bytes[i + 5]!]! ^ T1[bytes[i + 6]!]! ^ T0[bytes[i + 7]!]!;
  }
  for (; i < bytes.length; i++) crc = crc >>> 8 ^ T0[(crc ^ bytes[i]!) & 0xff]!;
  return ~crc >>> 0;
}
