import fc from "fast-check";
import assert from "node:assert/strict";
import { BATCH_FRAME_BYTES_MAX } from "./batch.ts";
import { type Frame, FRAME_LENGTH_MAX, FrameDecoder } from "./frame.ts";
import { FrameWriter } from "./frame_writer.ts";
import { decodeMessage, hintText, type Message, type OutgoingMessage } from "./messages.ts";
import { DEFAULT_TENANT } from "./tenant.ts";

/** What a peer reads of a message: its frames, taken apart, and what they say. */
function send(
  message: OutgoingMessage,
  writer = new FrameWriter(),
): { frames: Frame[]; messages: Message[]; sizes: number[] } {
  const frames: Frame[] = [];
  const messages: Message[] = [];
  const sizes: number[] = [];
  const count = writer.encode(message, (bytes) => {
    const decoder = new FrameDecoder();
    decoder.push(bytes);
    const frame = decoder.next();
    assert(frame !== undefined && !decoder.partial, "one complete frame");
    const said = decodeMessage(frame);
    assert(said !== undefined);
    frames.push(frame);
    messages.push(said);
    sizes.push(bytes.length);
  });
  assert.equal(count, frames.length);
  return { frames, messages, sizes };
}

/** All the hints of some messages. */
function hints(messages: readonly Message[]): unknown[] {
  return messages.flatMap((message): readonly unknown[] => "items" in message ? message.items : []);
}

/** Asserts that a message is refused by an error of this kind, before any frame is emitted. */
function refused(message: unknown, error: assert.AssertPredicate): void {
  assert.throws(
    () => new FrameWriter().encode(message as OutgoingMessage, () => assert.fail("emitted")),
    error,
  );
}

const PLAIN = { noNullPrototype: true } as const;
const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  // Any UTF-16 code units, lone surrogates among them.
  fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units)),
  fc.constantFrom(
    "\0",
    "\u2028\u2029",
    "\ud83d\ude00",
    "\ud800",
    "\udc00x",
    "é",
    '"\\/',
    "\x7f",
    "\ufeff",
  ),
);
const anyHint = fc.record({
  queue: anyText.filter((text) => text !== ""),
  partition: anyText,
  tenant: fc.uuid(),
}, PLAIN);
const anyMessage: fc.Arbitrary<Message> = fc.oneof(
  fc.record({
    type: fc.constant("message_available" as const),
    items: fc.array(anyHint, { minLength: 1 }),
  }, PLAIN),
  fc.record({
    type: fc.constant("hotlist_dirty" as const),
    items: fc.array(
      fc.tuple(anyHint, anyText).map(([hint, group]) => ({ ...hint, group: group || undefined })),
      { minLength: 1 },
    ),
  }, PLAIN),
  fc.record({
    type: fc.constantFrom("queue_config_set" as const, "queue_config_delete" as const),
    queue: anyText,
    tenant: fc.uuid(),
  }, PLAIN),
  fc.record({
    type: fc.constantFrom("maintenance_mode" as const, "pop_maintenance_mode" as const),
    enabled: fc.boolean(),
  }, PLAIN),
);

Deno.test("any message is read as it was said, by one writer after another message", () => {
  const writer = new FrameWriter();
  fc.assert(fc.property(anyMessage, (message) => {
    assert.deepEqual(send(message, writer).messages, [message]);
  }));
});

Deno.test("names with NUL, quotes, line separators, emoji and lone surrogates survive", () => {
  for (
    const queue of ["\0", '"\\"', "\u2028", "\ud83d\ude00", "\ud83d", "\ude00\ud83d", "\x7f", "~ !"]
  ) {
    const item = { queue, partition: queue, tenant: DEFAULT_TENANT };
    assert.deepEqual(hints(send({ type: "message_available", items: [item] }).messages), [item]);
  }
});

Deno.test("what is left out is the empty partition, the default tenant and every group", () => {
  const { frames } = send({
    type: "hotlist_dirty",
    items: [{ queue: "q" }, { queue: "q", group: "" }],
  });
  const item = { queue: "q", partition: "", tenant: DEFAULT_TENANT };
  assert.deepEqual(JSON.parse(new TextDecoder().decode(frames[0]?.payload)), {
    items: [item, item],
  });
  const { messages } = send({ type: "queue_config_set", queue: "" });
  assert.deepEqual(messages, [{ type: "queue_config_set", queue: "", tenant: DEFAULT_TENANT }]);
});

Deno.test("a tenant is sent in lowercase", () => {
  const tenant = "AABBCCDD-1122-3344-5566-778899AABBCC";
  const { frames } = send({ type: "queue_config_delete", queue: "q", tenant });
  const payload = JSON.parse(new TextDecoder().decode(frames[0]?.payload));
  assert.deepEqual(payload, { queue: "q", tenant: tenant.toLowerCase() });
});

Deno.test("one partition goes as type 1, several as type 2, dirty ones always as type 5", () => {
  const items = [{ queue: "a" }, { queue: "b" }];
  const types = (message: OutgoingMessage) => send(message).frames.map(({ type }) => type);
  assert.deepEqual(types({ type: "message_available", items: items.slice(1) }), [1]);
  assert.deepEqual(types({ type: "message_available", items }), [2]);
  assert.deepEqual(types({ type: "hotlist_dirty", items: items.slice(1) }), [5]);
  assert.deepEqual(types({ type: "hotlist_dirty", items }), [5]);
  assert.deepEqual(types({ type: "message_available", items: [] }), []);
  assert.deepEqual(types({ type: "hotlist_dirty", items: [] }), []);
});

Deno.test("a large batch is split by bytes into as few frames as its items allow", () => {
  for (const name of ["q", "é", "\u20ac", "\ud83d\ude00", "\0"]) {
    for (const type of ["message_available", "hotlist_dirty"] as const) {
      const item = { queue: name.repeat(1000), partition: "", tenant: DEFAULT_TENANT };
      const sent = { type, items: Array.from({ length: 2500 }, () => item) };
      const { messages, sizes } = send(sent);
      const got = hints(messages);
      assert.equal(got.length, sent.items.length);
      assert.deepEqual(got[0], type === "hotlist_dirty" ? { ...item, group: undefined } : item);
      assert(sizes.length > 1);
      const itemBytes = new TextEncoder().encode(JSON.stringify(item)).length;
      for (const [index, size] of sizes.entries()) {
        assert(size <= BATCH_FRAME_BYTES_MAX, `a frame of ${size} bytes`);
        // Another item would not have fitted.
        if (index < sizes.length - 1) assert(size + itemBytes + 1 > BATCH_FRAME_BYTES_MAX);
      }
    }
  }
});

Deno.test("items of any sizes keep their order across frames", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("x", "é", "\u20ac", "\x01"), fc.nat(400_000)), {
        maxLength: 12,
      }),
      (sizes) => {
        const items = sizes.map(([unit, count], index) => ({
          queue: `${index}`,
          partition: unit.repeat(count),
          tenant: DEFAULT_TENANT,
        }));
        const sent = send({ type: "message_available", items });
        assert.deepEqual(hints(sent.messages), items);
        for (const [index, message] of sent.messages.entries()) {
          assert("items" in message);
          const alone = message.items.length === 1;
          assert.equal(sent.frames[index]?.type, alone ? 1 : 2);
          assert(alone || (sent.sizes[index] ?? Infinity) <= BATCH_FRAME_BYTES_MAX);
        }
      },
    ),
    { numRuns: 20 },
  );
});

Deno.test("a larger item goes alone, up to the longest frame that there is", () => {
  const small = { queue: "small", partition: "", tenant: DEFAULT_TENANT };
  const empty = JSON.stringify({ ...small, queue: "" }).length;
  const longest = { ...small, queue: "x".repeat(FRAME_LENGTH_MAX - 1 - empty) };
  const { messages, frames } = send({ type: "message_available", items: [small, longest, small] });
  assert.deepEqual(frames.map(({ type }) => type), [1, 1, 1]);
  assert.equal(frames[1]?.payload.length, FRAME_LENGTH_MAX - 1);
  assert.deepEqual(hints(messages), [small, longest, small]);

  const longer = { ...longest, queue: `${longest.queue}x` };
  refused({ type: "message_available", items: [small, longer] }, { name: "RangeError" });
  refused({ type: "hotlist_dirty", items: [small, longest] }, { name: "RangeError" });
  refused({ type: "queue_config_set", queue: "x".repeat(FRAME_LENGTH_MAX) }, {
    name: "RangeError",
  });
  const dirty = { ...small, queue: longest.queue.slice('{"items":[]}'.length) };
  const sent = send({ type: "hotlist_dirty", items: [small, dirty] });
  assert.equal(sent.frames[1]?.payload.length, FRAME_LENGTH_MAX - 1);
});

Deno.test("hints that were made into text before are sent as any others", () => {
  const a = hintText({ queue: "a" });
  const b = hintText({ queue: "b", partition: "p" });
  assert.equal(hintText({ partition: "", tenant: DEFAULT_TENANT, queue: "a" }), a);
  const types: (number | undefined)[] = [];
  const writer = new FrameWriter();
  const emit = (frame: Uint8Array) => types.push(frame[4]);
  assert.equal(writer.writeHints(new Set([a, b]), emit), 1);
  assert.equal(writer.writeHints([b], emit), 1);
  assert.equal(writer.writeHints([], emit), 0);
  assert.deepEqual(types, [2, 1]);
});

Deno.test("frames share one buffer", () => {
  const writer = new FrameWriter();
  const buffers = new Set<ArrayBufferLike>();
  for (const queue of ["a", "b", "c"]) {
    writer.encode({ type: "queue_config_set", queue }, ({ buffer }) => buffers.add(buffer));
    writer.heartbeat(queue, ({ buffer }) => buffers.add(buffer));
  }
  assert.equal(buffers.size, 1);
});

Deno.test("a heartbeat names its sender", () => {
  const writer = new FrameWriter();
  const frames: Uint8Array[] = [];
  assert.equal(writer.heartbeat('node "é"', (frame) => frames.push(frame.slice())), 1);
  assert.equal(frames[0]?.[4], 3);
  const payload = new TextDecoder().decode(frames[0]?.subarray(5));
  assert.deepEqual(JSON.parse(payload), { server_id: 'node "é"' });
  for (const serverId of ["", 7, undefined]) {
    assert.throws(() => writer.heartbeat(serverId as string, () => assert.fail()), TypeError);
  }
});

Deno.test("a message of the wrong shape is refused by its value, before anything is emitted", () => {
  const available = (item: unknown) => ({
    type: "message_available",
    items: [{ queue: "q" }, item],
  });
  const refusals: [unknown, RegExp][] = [
    [available({}), /^queue must be .*, got undefined$/],
    [available({ queue: "" }), /^queue must be .*, got ""$/],
    [available({ queue: 7n }), /^queue must be .*, got 7$/],
    [available({ queue: Symbol("q") }), /^queue must be .*, got Symbol\(q\)$/],
    [available({ queue: () => "q" }), /^queue must be .*, got a function$/],
    [available({ queue: ["q"] }), /^queue must be .*, got an array$/],
    [available({ queue: "q", partition: false }), /^partition must be .*, got false$/],
    [available({ queue: "q", tenant: "default" }), /^tenant must be .*, got "default"$/],
    [available({ queue: "q", tenant: "" }), /^tenant must be .*, got ""$/],
    [available({ queue: "q", tenant: null }), /^tenant must be .*, got null$/],
    [available({ queue: "q", tenant: "x".repeat(99) }), /got "x{64}\.\.\."$/],
    [available(null), /^An item must be an object, got null$/],
    [available("q"), /^An item must be an object, got "q"$/],
    [{ type: "message_available" }, /^items must be an array, got undefined$/],
    [{ type: "hotlist_dirty", items: {} }, /^items must be an array, got an object$/],
    [{ type: "hotlist_dirty", items: [{ queue: "" }] }, /^queue must be .*, got ""$/],
    [{ type: "hotlist_dirty", items: [{ queue: "q", group: 7 }] }, /^group must be .*, got 7$/],
    [{ type: "queue_config_set", queue: 7 }, /^queue must be a string, got 7$/],
    [{ type: "queue_config_delete", queue: "q", tenant: "t" }, /^tenant must be .*, got "t"$/],
    [{ type: "maintenance_mode", enabled: "true" }, /^enabled must be .*, got "true"$/],
    [{ type: "pop_maintenance_mode" }, /^enabled must be .*, got undefined$/],
    [{ type: "hello" }, /^type must .*, got "hello"$/],
  ];
  for (const [message, text] of refusals) refused(message, { name: "TypeError", message: text });
});
