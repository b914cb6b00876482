import fc from "fast-check";
import assert from "node:assert/strict";
import { encodeFrame, FRAME_TYPE } from "./frame.ts";
import { decodeMessage, type Message } from "./messages.ts";

const UUID = "aabbccdd-1122-3344-5566-778899aabbcc";

/** What a frame of the given type says, whose payload is text, bytes, or any JSON value. */
function decode(type: number, payload: unknown): Message | undefined {
  const bytes = typeof payload === "string" || payload instanceof Uint8Array
    ? payload
    : JSON.stringify(payload);
  return decodeMessage({ type, payload: encodeFrame(type, bytes).subarray(5) });
}

const KNOWN_TYPES = [1, 2, 5, 10, 11, 40, 41];

Deno.test("a partition is announced with or without its name and tenant", () => {
  assert.deepEqual(
    decode(1, { queue: "q", partition: "p", tenant: UUID.toUpperCase(), more: [] }),
    {
      type: "message_available",
      items: [{ queue: "q", partition: "p", tenant: UUID }],
    },
  );
  for (const tenant of [undefined, null, "", 7, "default", [UUID]]) {
    assert.deepEqual(decode(1, { queue: "q", tenant }), {
      type: "message_available",
      items: [{ queue: "q", partition: "", tenant: undefined }],
    });
  }
});

Deno.test("an unusable hint is ignored", () => {
  const unusable = [
    {},
    { queue: "" },
    { queue: 7 },
    { queue: null },
    { queue: ["q"] },
    { queue: "q", partition: 7 },
    { queue: "q", partition: null },
    { Queue: "q" },
  ];
  for (const hint of unusable) assert.equal(decode(1, hint), undefined, JSON.stringify(hint));
});

Deno.test("a batch keeps its usable items, in order", () => {
  const items = [
    { queue: "a" },
    null,
    7,
    "q",
    [],
    [{ queue: "x" }],
    {},
    { queue: "" },
    { queue: "b", partition: false },
    { queue: "c", partition: "p", tenant: UUID, group: "g" },
  ];
  const a = { queue: "a", partition: "", tenant: undefined };
  const c = { queue: "c", partition: "p", tenant: UUID };
  assert.deepEqual(decode(2, { items }), { type: "message_available", items: [a, c] });
  assert.deepEqual(decode(5, { items }), {
    type: "hotlist_dirty",
    items: [{ ...a, group: undefined }, { ...c, group: "g" }],
  });
});

Deno.test("a batch without a usable item is ignored", () => {
  for (const type of [2, 5]) {
    for (
      const items of [[], [{}], undefined, null, {}, "items", { 0: { queue: "q" }, length: 1 }]
    ) {
      assert.equal(decode(type, { items }), undefined);
    }
    assert.equal(decode(type, { queue: "q" }), undefined);
  }
});

Deno.test("a group that is missing, empty or no string means every group", () => {
  for (const group of [undefined, null, "", 7, ["g"]]) {
    const message = decode(5, { items: [{ queue: "q", group }] });
    assert(message?.type === "hotlist_dirty");
    assert.equal(message.items[0]?.group, undefined);
  }
});

Deno.test("a changed or deleted configuration names its queue, which may be empty", () => {
  assert.deepEqual(decode(10, { queue: "", tenant: UUID }), {
    type: "queue_config_set",
    queue: "",
    tenant: UUID,
  });
  assert.deepEqual(decode(11, { queue: "q", tenant: 7 }), {
    type: "queue_config_delete",
    queue: "q",
    tenant: undefined,
  });
  for (const type of [10, 11]) {
    for (const queue of [undefined, null, 7, {}]) assert.equal(decode(type, { queue }), undefined);
  }
});

Deno.test("a flip needs a boolean", () => {
  assert.deepEqual(decode(40, { enabled: true }), { type: "maintenance_mode", enabled: true });
  assert.deepEqual(decode(41, { enabled: false }), {
    type: "pop_maintenance_mode",
    enabled: false,
  });
  for (const type of [40, 41]) {
    for (const enabled of [undefined, null, 0, 1, "true"]) {
      assert.equal(decode(type, { enabled }), undefined);
    }
  }
});

Deno.test("a HELLO, a HEARTBEAT and unknown types say nothing", () => {
  const payload = { queue: "q", items: [{ queue: "q" }], enabled: true, server_id: "node-a" };
  for (let type = 0; type < 256; type++) {
    assert.equal(decode(type, payload) !== undefined, KNOWN_TYPES.includes(type), `type ${type}`);
  }
});

Deno.test("a payload that is no JSON object says nothing", () => {
  const good = '{"queue":"q","items":[{"queue":"q"}],"enabled":true}';
  const invalid = new TextEncoder().encode(good.replace('"q"', '"?"'));
  invalid[invalid.indexOf(0x3f)] = 0xff;
  const payloads = [
    "",
    " ",
    "null",
    "1",
    '"q"',
    `[${good}]`,
    good.slice(0, -1),
    `${good}x`,
    `\ufeff${good}`,
    good.replaceAll('"', "'"),
    invalid,
  ];
  for (const type of KNOWN_TYPES) {
    for (const payload of payloads) assert.equal(decode(type, payload), undefined);
    assert.notEqual(decode(type, ` ${good}\n`), undefined);
  }
});

Deno.test("a payload with __proto__ changes no prototype and lends no field", () => {
  const fields = '{"queue":"q","items":[{"queue":"q"}],"enabled":true}';
  for (const type of KNOWN_TYPES) {
    assert.equal(decode(type, `{"__proto__":${fields}}`), undefined);
    assert.equal(decode(type, `{"constructor":{"prototype":${fields}}}`), undefined);
  }
  assert.equal(decode(2, `{"items":[{"__proto__":${fields}}]}`), undefined);
  assert.equal(decode(1, '{"queue":"__proto__","__proto__":null}')?.type, "message_available");
  assert.equal(({} as Record<string, unknown>)["queue"], undefined);
});

Deno.test("a payload nested a million deep does not throw", () => {
  const depth = 1_000_000;
  const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
  assert.equal(decode(1, `{"queue":"q","deep":${deep}}`)?.type, "message_available");
  assert.equal(decode(2, `{"items":${deep}}`), undefined);
  assert.equal(decode(5, `{"items":${"[".repeat(depth)}`), undefined);
  assert.equal(decode(1, '{"queue":'.repeat(depth)), undefined);
});

Deno.test("no payload makes reading throw", () => {
  const values = fc.jsonValue({ maxDepth: 3 });
  const field = fc.constantFrom("queue", "partition", "tenant", "group", "items", "enabled");
  const object = fc.dictionary(field, fc.oneof(values, fc.array(fc.dictionary(field, values))));
  fc.assert(fc.property(
    fc.constantFrom(...KNOWN_TYPES, FRAME_TYPE.HELLO, 99),
    fc.oneof(fc.uint8Array(), fc.json(), object.map((value) => JSON.stringify(value))),
    (type, payload) => {
      const message = decode(type, payload);
      if (message !== undefined && "items" in message) {
        assert(message.items.length > 0);
        for (const item of message.items) {
          assert(typeof item.queue === "string" && item.queue !== "");
          assert(typeof item.partition === "string");
        }
      }
    },
  ));
});
