import assert from "node:assert/strict";
import fc from "fast-check";
import { parsePeers } from "./peers.ts";

const understood: [list: string, host: string, port: number][] = [
  ["a", "a", 6633],
  ["a:7000", "a", 7000],
  [" a : 7000 ", "a", 7000],
  ["http://a:7000", "a", 7000],
  ["HTTPS://a", "a", 6633],
  ["10.0.0.1", "10.0.0.1", 6633],
  ["10.0.0.1:1", "10.0.0.1", 1],
  ["[::1]", "::1", 6633],
  ["[::1]:65535", "::1", 65535],
  ["::1", "::1", 6633],
  ["fe80::1%eth0", "fe80::1%eth0", 6633],
  ["2001:db8::7000", "2001:db8::7000", 6633],
  ["::ffff:10.0.0.1", "::ffff:10.0.0.1", 6633],
  ["https://[2001:db8::1]:7000", "2001:db8::1", 7000],
];

for (const [list, host, port] of understood) {
  Deno.test(`the peer ${JSON.stringify(list)} is ${host}, port ${port}`, () => {
    assert.deepEqual(parsePeers(list, 6633), { peers: [{ host, port }], warnings: [] });
  });
}

const corrected: [list: string, host: string][] = [
  ["a:0", "a"],
  ["a:65536", "a"],
  ["a:", "a"],
  ["a:b", "a"],
  ["a:70 00", "a"],
  ["a:7000/path", "a"],
  ["[::1]:x", "::1"],
  ["[::1]x", "::1"],
];

for (const [list, host] of corrected) {
  Deno.test(`the tail of ${JSON.stringify(list)} is dropped with a warning that quotes it`, () => {
    const { peers, warnings } = parsePeers(list, 6633);
    assert.deepEqual(peers, [{ host, port: 6633 }]);
    assert.equal(warnings.length, 1);
    assert(warnings[0]?.includes(JSON.stringify(list)), warnings[0]);
  });
}

Deno.test("items are separated by commas, and empty ones are skipped", () => {
  const { peers, warnings } = parsePeers(" a:1 ,, b ,http://, ", 6633);
  assert.deepEqual(peers, [{ host: "a", port: 1 }, { host: "b", port: 6633 }]);
  assert.deepEqual(warnings, []);
});

Deno.test("an item without a host is skipped with a warning", () => {
  const { peers, warnings } = parsePeers(":7000,[]:1", 6633);
  assert.deepEqual(peers, []);
  assert.equal(warnings.length, 2);
});

Deno.test("any text gives hosts that are not empty and ports that can be dialled", () => {
  fc.assert(fc.property(fc.string({ unit: fc.constantFrom(..."a1:[]., %/h") }), (list) => {
    for (const { host, port } of parsePeers(list, 6633).peers) {
      assert(host !== "" && host === host.trim() && !host.startsWith("["), host);
      assert(Number.isInteger(port) && port >= 1 && port <= 65_535);
    }
  }));
});
