import assert from "node:assert/strict";
import fc from "fast-check";
import { decodeRecord, encodeRecord, type SpoolRecord } from "./spool_record.ts";

const record: SpoolRecord = {
  tenant: "00000000-0000-0000-0000-000000000001",
  queue: "orders",
  partition: "Default",
  messageId: "m",
  transactionId: "t",
  payload: '{"a":1}',
  acceptedAt: 1_700_000_000_000,
};

Deno.test("a record comes back from its bytes as it was", () => {
  const name = fc.string({ unit: "binary" });
  fc.assert(fc.property(
    fc.record({ queue: name, partition: name, transactionId: name, payload: name }),
    fc.nat(),
    (parts, acceptedAt) => {
      const given = { ...record, ...parts, acceptedAt };
      assert.deepEqual(decodeRecord(encodeRecord(given), acceptedAt), given);
    },
  ));
});

Deno.test("names with newlines, quotes and lone surrogates come back as they were", () => {
  const given = { ...record, queue: 'a\n"b"', partition: "\ud800", transactionId: "\0" };
  assert.deepEqual(decodeRecord(encodeRecord(given), record.acceptedAt), given);
});

Deno.test("a payload keeps its newlines, its byte order mark and its escapes", () => {
  const given = { ...record, payload: '\ufeff{\n"a": "\\ud800", "b": 12345678901234567890}\n' };
  assert.deepEqual(decodeRecord(encodeRecord(given), record.acceptedAt), given);
});

Deno.test("a payload with a lone surrogate is refused, for UTF-8 cannot carry it", () => {
  assert.throws(() => encodeRecord({ ...record, payload: '"\udc00"' }), TypeError);
});

Deno.test("bytes that spell no record are refused", () => {
  const encoder = new TextEncoder();
  for (const text of ["", "[]", "[]\n1", '["a","b","c","d",5]\n1', "{\n1"]) {
    assert.throws(() => decodeRecord(encoder.encode(text), 0), SyntaxError, text);
  }
  assert.throws(() => decodeRecord(Uint8Array.of(0xff, 0x0a), 0), TypeError);
});
