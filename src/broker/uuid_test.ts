import assert from "node:assert/strict";
import { Prng } from "../simulation/prng.ts";
import { randomUuids } from "./uuid.ts";

Deno.test("random UUIDs are of version 4 and differ", () => {
  const uuids = randomUuids(1000, new Prng(1).random);
  for (const uuid of uuids) {
    assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  assert.equal(new Set(uuids).size, 1000);
});

Deno.test("a random UUID is made of the bytes that were drawn", () => {
  const [uuid] = randomUuids(1, (bytes) => bytes.map((_, i) => i * 17) as typeof bytes);
  assert.equal(uuid, "00112233-4455-4677-8899-aabbccddeeff");
});
