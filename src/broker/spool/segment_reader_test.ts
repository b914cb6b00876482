import assert from "node:assert/strict";
import { Prng } from "../../simulation/prng.ts";
import type { SpoolFile } from "./file_system.ts";
import { FRAME_HEADER_BYTES, writeFrame } from "./frame.ts";
import { type Piece, SegmentReader } from "./segment_reader.ts";

const marker = new Prng(7).random(new Uint8Array(16));

/** A file in memory, to read alone. */
function fileOf(content: Uint8Array): SpoolFile {
  const refuse = () => Promise.reject(new Error("not asked for"));
  return {
    read: (buffer, position) => {
      const bytes = content.subarray(position, position + buffer.length);
      buffer.set(bytes);
      return Promise.resolve(bytes.length);
    },
    write: refuse,
    truncate: refuse,
    sync: refuse,
    close: refuse,
  };
}

/** A segment with one record of each length, positions from 1. */
function segmentOf(lengths: readonly number[]): { bytes: Uint8Array; ends: number[] } {
  const prng = new Prng(1);
  const bytes = new Uint8Array(
    lengths.reduce((sum, length) => sum + FRAME_HEADER_BYTES + length, 0),
  );
  const ends: number[] = [];
  for (const [i, length] of lengths.entries()) {
    const body = prng.random(new Uint8Array(length));
    const frame = { marker, body, position: i + 1, acceptedAt: 1e12 + i + 0.5, lane: 2 ** 48 - 1 };
    ends.push(writeFrame(bytes, ends.at(-1) ?? 0, frame));
  }
  return { bytes, ends };
}

async function read(content: Uint8Array, end = content.length, offset = 0): Promise<Piece[]> {
  const reader = new SegmentReader({ file: fileOf(content), marker, offset, end });
  const pieces: Piece[] = [];
  for (let piece = await reader.next(); piece !== undefined; piece = await reader.next()) {
    pieces.push(piece);
  }
  return pieces;
}

/** The positions that were read, and `x` for each damaged stretch. */
function summary(pieces: readonly Piece[]): string {
  return pieces.map(({ frame }) => frame?.position ?? "x").join(" ");
}

Deno.test("records come back as they were written, empty and large ones", async () => {
  const lengths = [0, 1, 300, 700_000, 5];
  const { bytes, ends } = segmentOf(lengths);
  const pieces = await read(bytes);
  assert.deepEqual(pieces.map(({ end }) => end), ends);
  assert.deepEqual(pieces.map(({ frame }) => frame?.body.length), lengths);
  assert.deepEqual(pieces[4]?.frame, {
    position: 5,
    acceptedAt: 1e12 + 4.5,
    lane: 2 ** 48 - 1,
    body: bytes.slice(-5),
  });
});

Deno.test("an empty segment has nothing in it", async () => {
  assert.deepEqual(await read(new Uint8Array(0)), []);
});

Deno.test("one flipped bit, whichever, costs the record that it is in and is reported", async () => {
  const { bytes, ends } = segmentOf([40, 0, 25, 60]);
  for (let bit = 0; bit < 8 * bytes.length; bit++) {
    const damaged = bytes.slice();
    damaged[bit >>> 3]! ^= 1 << (bit & 7);
    const hit = ends.findIndex((end) => bit >>> 3 < end) + 1;
    const expected = [1, 2, 3, 4].map((position) => position === hit ? "x" : position).join(" ");
    assert.equal(summary(await read(damaged)), expected, `bit ${bit}`);
  }
});

Deno.test("a tail that is torn, wherever, costs the last record and is reported", async () => {
  const { bytes, ends } = segmentOf([40, 0, 25]);
  for (let length = 0; length <= bytes.length; length++) {
    const whole = ends.filter((end) => end <= length);
    const expected = whole.map((_, i) => i + 1).join(" ");
    const isTorn = length !== (whole.at(-1) ?? 0);
    const actual = summary(await read(bytes.slice(0, length)));
    assert.equal(actual, isTorn ? `${expected} x`.trim() : expected, `length ${length}`);
  }
});

Deno.test("a file that is shorter than it was is damaged at its end", async () => {
  const { bytes, ends } = segmentOf([40, 0, 25]);
  for (let length = 0; length < bytes.length; length++) {
    const whole = ends.filter((end) => end <= length).map((_, i) => i + 1);
    const pieces = await read(bytes.slice(0, length), bytes.length);
    assert.equal(summary(pieces), [...whole, "x"].join(" "), `length ${length}`);
    assert.equal(pieces.at(-1)?.end, bytes.length);
  }
});

Deno.test("a stretch of zeros, or of anything, is passed, however long", async () => {
  const { bytes, ends } = segmentOf([40, 25]);
  for (const length of [1, 47, 48, 300, 262_143, 262_144, 600_000]) {
    for (
      const filler of [new Uint8Array(length), new Prng(length).random(new Uint8Array(length))]
    ) {
      const content = new Uint8Array(bytes.length + length);
      content.set(bytes.subarray(0, ends[0]));
      content.set(filler, ends[0]);
      content.set(bytes.subarray(ends[0]), ends[0]! + length);
      assert.equal(summary(await read(content)), "1 x 2", `${length} bytes`);
    }
  }
});

Deno.test("a record inside the body of a damaged one is no record without the marker", async () => {
  const inner = new Uint8Array(FRAME_HEADER_BYTES + 10);
  const guess = new Prng(8).random(new Uint8Array(16));
  writeFrame(inner, 0, {
    marker: guess,
    body: new Uint8Array(10),
    position: 9,
    acceptedAt: 0,
    lane: 0,
  });
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + inner.length);
  writeFrame(bytes, 0, { marker, body: inner, position: 1, acceptedAt: 0, lane: 0 });
  bytes[20]! ^= 1;
  assert.equal(summary(await read(bytes)), "x");
});

Deno.test("reading begins and ends where it is told", async () => {
  const { bytes, ends } = segmentOf([40, 0, 25]);
  assert.equal(summary(await read(bytes, ends[1], ends[0])), "2");
});
