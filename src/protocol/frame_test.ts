import fc from "fast-check";
import assert from "node:assert/strict";
import { encodeFrame, type Frame, FRAME_LENGTH_MAX, FrameDecoder, FrameError } from "./frame.ts";

/** A header that announces `length`. */
function header(length: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, length);
  return bytes;
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Copies what a frame says, since its payload is a view. */
function copy({ type, payload }: Frame): { type: number; payload: number[] } {
  return { type, payload: [...payload] };
}

/** Reads `bytes` into the decoder's own space, at most `count` at a time. */
function* feed(decoder: FrameDecoder, bytes: Uint8Array, count: number): Generator<Frame> {
  for (let at = 0; at < bytes.length;) {
    const space = decoder.space();
    const part = bytes.subarray(at, at + Math.min(count, space.length));
    space.set(part);
    decoder.filled(part.length);
    at += part.length;
    for (let frame; (frame = decoder.next()) !== undefined;) yield frame;
  }
}

/** The size of the decoder's buffer. */
function capacity(decoder: FrameDecoder): number {
  return decoder.space().buffer.byteLength;
}

const anyFrame = fc.record({
  type: fc.nat(255),
  payload: fc.uint8Array({ maxLength: 100, size: "max" }),
});

Deno.test("a frame counts its type and payload in a big-endian length", () => {
  assert.deepEqual([...encodeFrame(3, "{}")], [0, 0, 0, 3, 3, 123, 125]);
  assert.deepEqual([...encodeFrame(255, new Uint8Array(0))], [0, 0, 0, 1, 255]);
  assert.deepEqual([...encodeFrame(4, "é").subarray(0, 5)], [0, 0, 0, 3, 4]);
  assert.deepEqual(
    [...encodeFrame(9, new Uint8Array(0x012345)).subarray(0, 5)],
    [0, 1, 0x23, 0x46, 9],
  );
});

Deno.test("a frame of the largest length is encoded and decoded, a longer one refused", () => {
  const bytes = encodeFrame(1, new Uint8Array(FRAME_LENGTH_MAX - 1).fill(7));
  const decoder = new FrameDecoder();
  const frames = [...feed(decoder, bytes, Infinity)];
  assert.equal(frames.length, 1);
  assert.equal(frames[0]?.payload.length, FRAME_LENGTH_MAX - 1);
  assert(frames[0]?.payload.every((byte) => byte === 7));
  assert.equal(capacity(decoder), 65_536);
  assert.throws(() => encodeFrame(1, new Uint8Array(FRAME_LENGTH_MAX)), RangeError);
  assert.throws(() => encodeFrame(1, "x".repeat(FRAME_LENGTH_MAX)), RangeError);
  assert.throws(() => encodeFrame(1, "é".repeat(FRAME_LENGTH_MAX / 2)), RangeError);
});

Deno.test("a frame's type has to be a byte", () => {
  for (const type of [-1, 256, 1.5, NaN]) assert.throws(() => encodeFrame(type, ""), RangeError);
});

Deno.test("any frames under any segmentation come out the same", () => {
  fc.assert(fc.property(
    fc.array(anyFrame, { maxLength: 20 }),
    fc.integer({ min: 5, max: 80 }),
    fc.infiniteStream(fc.integer({ min: 1, max: 150 })),
    fc.boolean(),
    (frames, chunkBytes, cuts, pushes) => {
      const bytes = concat(frames.map(({ type, payload }) => encodeFrame(type, payload)));
      const decoder = new FrameDecoder({ chunkBytes });
      const seen: unknown[] = [];
      for (let at = 0; at < bytes.length;) {
        const cut = cuts.next().value;
        if (pushes) {
          decoder.push(bytes.subarray(at, at + cut));
          at += cut;
          for (let frame; (frame = decoder.next()) !== undefined;) seen.push(copy(frame));
        } else {
          const segment = bytes.subarray(at, at + cut);
          for (const frame of feed(decoder, segment, segment.length)) seen.push(copy(frame));
          at += segment.length;
        }
      }
      assert.deepEqual(seen, frames.map(copy));
      assert.equal(decoder.partial, false);
    },
  ));
});

Deno.test("frames come out the same where next is not called after every read", () => {
  fc.assert(fc.property(
    fc.array(anyFrame, { minLength: 1, maxLength: 30 }),
    fc.infiniteStream(fc.tuple(fc.integer({ min: 1, max: 99 }), fc.nat(3))),
    (frames, steps) => {
      const bytes = concat(frames.map(({ type, payload }) => encodeFrame(type, payload)));
      const decoder = new FrameDecoder({ chunkBytes: 16 });
      const seen: unknown[] = [];
      for (let at = 0; at < bytes.length;) {
        const [count, calls] = steps.next().value;
        const space = decoder.space();
        const part = bytes.subarray(at, at + Math.min(count, space.length));
        space.set(part);
        decoder.filled(part.length);
        at += part.length;
        for (let call = 0; call < calls; call++) {
          const frame = decoder.next();
          if (frame !== undefined) seen.push(copy(frame));
        }
      }
      for (let frame; (frame = decoder.next()) !== undefined;) seen.push(copy(frame));
      assert.deepEqual(seen, frames.map(copy));
    },
  ));
});

Deno.test("a stream is read one byte at a time", () => {
  const bytes = concat([encodeFrame(1, "one"), encodeFrame(2, ""), encodeFrame(3, "three")]);
  const decoder = new FrameDecoder();
  const types = [...feed(decoder, bytes, 1)].map(({ type }) => type);
  assert.deepEqual(types, [1, 2, 3]);
});

Deno.test("any bytes give frames or a FrameError, and the buffer stays within bounds", () => {
  const anyLength = fc.oneof(
    fc.nat(40),
    fc.constantFrom(0, FRAME_LENGTH_MAX, FRAME_LENGTH_MAX + 1, 0xffff_ffff),
  );
  const chunk = fc.oneof(fc.uint8Array({ maxLength: 60 }), anyLength.map(header));
  fc.assert(fc.property(
    fc.array(chunk, { maxLength: 30 }),
    fc.integer({ min: 5, max: 64 }),
    fc.option(fc.integer({ min: 1, max: FRAME_LENGTH_MAX }), { nil: undefined }),
    fc.integer({ min: 1, max: 40 }),
    (chunks, chunkBytes, lengthMax = FRAME_LENGTH_MAX, count) => {
      const bytes = concat(chunks);
      const decoder = new FrameDecoder({ chunkBytes, lengthMax });
      // Where the next frame begins, and how much has arrived after that.
      let start = 0;
      for (let at = 0; at < bytes.length;) {
        const space = decoder.space();
        const part = bytes.subarray(at, at + Math.min(count, space.length));
        space.set(part);
        decoder.filled(part.length);
        at += part.length;
        try {
          for (let frame; (frame = decoder.next()) !== undefined;) {
            assert.equal(frame.type, bytes[start + 4]);
            start += 5 + frame.payload.length;
          }
        } catch (error) {
          const announced = new DataView(bytes.buffer).getUint32(start);
          assert(error instanceof FrameError);
          assert.equal(error.length, announced);
          assert(announced === 0 || announced > lengthMax);
          return;
        }
        const held = at - start;
        const announced = held < 4 ? 0 : new DataView(bytes.buffer).getUint32(start);
        assert(held < 4 + announced || held < 4);
        const bound = Math.max(chunkBytes, Math.min(2 * held, 4 + announced));
        assert(capacity(decoder) <= bound, `${capacity(decoder)} bytes for ${held} held`);
      }
    },
  ));
});

Deno.test("the length 0 and a length over the maximum end the stream, after the frames before it", () => {
  for (const length of [0, FRAME_LENGTH_MAX + 1, 0x8000_0000, 0xffff_ffff]) {
    const decoder = new FrameDecoder();
    decoder.push(concat([encodeFrame(3, "{}"), header(length)]));
    assert.equal(decoder.next()?.type, 3);
    const refusal = { name: "FrameError", length, message: new RegExp(`, got ${length}:`) };
    assert.throws(() => decoder.next(), refusal);
    assert.throws(() => decoder.next(), refusal);
  }
});

Deno.test("an oversized length allocates nothing", () => {
  const decoder = new FrameDecoder({ chunkBytes: 16 });
  const { buffer } = decoder.space();
  decoder.push(header(FRAME_LENGTH_MAX + 1));
  assert.throws(() => decoder.next(), FrameError);
  assert.equal(decoder.space().buffer, buffer);
  // Even a caller that reads on gets room for what it reads and no more.
  for (let read = 0; read < 100; read++) {
    decoder.space()[0] = 0;
    decoder.filled(1);
  }
  assert(capacity(decoder) <= 104 + 16);
});

Deno.test("an announced frame allocates as its bytes arrive, up to its end and no further", () => {
  const bytes = encodeFrame(1, new Uint8Array(999_995));
  const decoder = new FrameDecoder();
  decoder.push(bytes.subarray(0, 5));
  assert.equal(capacity(decoder), 1024);
  const sizes = new Set<number>();
  const frames = [];
  for (const frame of feed(decoder, bytes.subarray(5), 10_000)) {
    frames.push(frame);
    assert.equal(frame.payload.buffer.byteLength, bytes.length);
  }
  assert.equal(frames.length, 1);
  assert.equal(capacity(decoder), 65_536, "the buffer is small again");

  const other = new FrameDecoder();
  for (let at = 0; at < 999_999; at++) {
    const space = other.space();
    sizes.add(space.buffer.byteLength);
    space[0] = bytes[at]!;
    other.filled(1);
    assert(space.buffer.byteLength <= Math.max(1024, 2 * at));
    assert.equal(other.next(), undefined);
  }
  const doubled = Array.from({ length: 10 }, (_, step) => 1024 * 2 ** step);
  assert.deepEqual([...sizes], [...doubled, 1_000_000]);
});

Deno.test("a decoder begins small and has its normal size after its first frame", () => {
  const decoder = new FrameDecoder();
  assert.equal(decoder.bufferBytes, 1024);
  decoder.push(encodeFrame(4, "{}"));
  assert.equal(decoder.bufferBytes, 1024);
  assert.equal(decoder.next()?.type, 4);
  assert.equal(decoder.space().length, 65_536);
  assert.equal(decoder.bufferBytes, 65_536);
});

Deno.test("what follows a large frame is moved to a small buffer", () => {
  const decoder = new FrameDecoder({ chunkBytes: 16 });
  decoder.push(concat([encodeFrame(1, new Uint8Array(100)), encodeFrame(2, "two").subarray(0, 6)]));
  assert.equal(decoder.next()?.payload.length, 100);
  assert.equal(decoder.next(), undefined);
  assert.equal(capacity(decoder), 16);
  decoder.push(encodeFrame(2, "two").subarray(6));
  assert.deepEqual(copy(decoder.next()!), {
    type: 2,
    payload: [...new TextEncoder().encode("two")],
  });
});

Deno.test("a payload is a view that lives until the next bytes are taken in", () => {
  const decoder = new FrameDecoder();
  const space = decoder.space();
  const bytes = concat([encodeFrame(1, "one"), encodeFrame(2, "two")]);
  space.set(bytes);
  decoder.filled(bytes.length);
  const one = decoder.next();
  const two = decoder.next();
  assert.equal(one?.payload.buffer, space.buffer);
  assert.equal(new TextDecoder().decode(one?.payload), "one");
  assert.equal(new TextDecoder().decode(two?.payload), "two");
});

Deno.test("partial tells a stream that ends inside a frame", () => {
  const decoder = new FrameDecoder();
  assert.equal(decoder.partial, false);
  decoder.push(encodeFrame(1, "one").subarray(0, 3));
  assert.equal(decoder.next(), undefined);
  assert.equal(decoder.partial, true);
  decoder.push(encodeFrame(1, "one").subarray(3));
  assert.equal(decoder.next()?.type, 1);
  assert.equal(decoder.partial, false);
});

Deno.test("the largest length can be lowered and raised between frames", () => {
  const decoder = new FrameDecoder({ lengthMax: 10 });
  assert.equal(decoder.lengthMax, 10);
  decoder.push(encodeFrame(4, "123456789"));
  assert.equal(decoder.next()?.type, 4);
  decoder.push(encodeFrame(4, "1234567890"));
  assert.throws(() => decoder.next(), { name: "FrameError", length: 11 });
  decoder.lengthMax = 11;
  assert.equal(decoder.next()?.type, 4);
});

Deno.test("a decoder refuses options, lengths and counts out of bounds", () => {
  for (const lengthMax of [0, -1, 1.5, NaN, FRAME_LENGTH_MAX + 1]) {
    assert.throws(() => new FrameDecoder({ lengthMax }), RangeError);
    assert.throws(() => new FrameDecoder().lengthMax = lengthMax, RangeError);
  }
  for (const chunkBytes of [4, 5.5, NaN]) {
    assert.throws(() => new FrameDecoder({ chunkBytes }), RangeError);
  }
  const decoder = new FrameDecoder({ chunkBytes: 8 });
  for (const count of [-1, 9, 0.5, NaN]) assert.throws(() => decoder.filled(count), RangeError);
  decoder.filled(8);
  assert.throws(() => decoder.filled(1), RangeError);
});
