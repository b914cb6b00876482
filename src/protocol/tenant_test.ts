import fc from "fast-check";
import assert from "node:assert/strict";
import { DEFAULT_TENANT, parseTenant } from "./tenant.ts";

Deno.test("a UUID of either case is a tenant in lowercase", () => {
  fc.assert(fc.property(fc.uuid(), fc.boolean(), (uuid, upper) => {
    assert.equal(parseTenant(upper ? uuid.toUpperCase() : uuid), uuid);
  }));
  assert.equal(parseTenant(DEFAULT_TENANT), DEFAULT_TENANT);
  assert.equal(
    parseTenant("ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
  );
});

Deno.test("what is no UUID counts as absent", () => {
  const uuid = "aabbccdd-1122-3344-5566-778899aabbcc";
  const others = [
    undefined,
    null,
    "",
    0,
    true,
    [uuid],
    { toString: () => uuid },
    uuid.replaceAll("-", ""),
    `{${uuid}}`,
    `${uuid}\n`,
    ` ${uuid}`,
    `${uuid}0`,
    uuid.slice(1),
    uuid.replace("a", "g"),
    "aabbccdd1-122-3344-5566-778899aabbcc",
    `urn:uuid:${uuid}`,
  ];
  for (const other of others) assert.equal(parseTenant(other), undefined, String(other));
});
