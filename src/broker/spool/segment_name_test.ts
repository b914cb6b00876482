import assert from "node:assert/strict";
import { formatSegmentName, parseSegmentName } from "./segment_name.ts";

const logId = "0f0e0d0c-0b0a-4908-8706-050403020100";

Deno.test("a segment's name says its number, its log and its key", () => {
  for (const number of [1, 9_999_999_999, 10_000_000_000]) {
    for (const keyId of [undefined, "0123456789abcdef"]) {
      const name = formatSegmentName({ number, logId, keyId });
      assert.deepEqual(parseSegmentName(name), { number, logId, keyId });
    }
  }
});

Deno.test("names sort as their numbers do", () => {
  const names = [2, 10, 1].map((number) => formatSegmentName({ number, logId, keyId: undefined }));
  assert.deepEqual(names.toSorted(), [names[2], names[0], names[1]]);
});

Deno.test("any other name is that of no segment", () => {
  const name = formatSegmentName({ number: 1, logId, keyId: undefined });
  for (const other of ["", `${name}~`, `x${name}`, name.replace("plain", "PLAIN"), name.slice(1)]) {
    assert.equal(parseSegmentName(other), undefined, other);
  }
});
