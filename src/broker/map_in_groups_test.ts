import assert from "node:assert/strict";
import { GROUP_SIZE, mapInGroups } from "./map_in_groups.ts";
import { fakeCipher } from "./spool/testing/fake_cipher.ts";
import { SpoolWorld } from "./spool/testing/spool_world.ts";

/** Passes calls on, and notes how many are under way at most. */
function watch<T, R>(call: (value: T) => Promise<R>) {
  let underWay = 0;
  const watched = {
    most: 0,
    async call(value: T): Promise<R> {
      watched.most = Math.max(watched.most, ++underWay);
      await Promise.resolve();
      const result = await call(value);
      underWay--;
      return result;
    },
  };
  return watched;
}

Deno.test("values are mapped in their order, no more than a group at a time", async () => {
  for (const count of [0, 1, GROUP_SIZE, 2 * GROUP_SIZE + 1]) {
    const double = watch((n: number) => Promise.resolve(2 * n));
    const values = Array.from({ length: count }, (_, i) => i);
    assert.deepEqual(await mapInGroups(values, double.call), values.map((n) => 2 * n));
    assert.equal(double.most, Math.min(count, GROUP_SIZE));
  }
});

Deno.test("one call that fails fails the whole", async () => {
  const values = Array.from({ length: GROUP_SIZE + 2 }, (_, i) => i);
  const map = (n: number) =>
    n > GROUP_SIZE ? Promise.reject(new Error(`no ${n}`)) : Promise.resolve(n);
  await assert.rejects(mapInGroups(values, map), /^Error: no 65$/);
});

Deno.test("a large push is sealed for the spool a group at a time", async () => {
  const world = new SpoolWorld();
  const cipher = fakeCipher(7);
  const seal = watch(cipher.seal);
  await using spool = await world.open({ cipher: { ...cipher, seal: seal.call } });
  const records = world.records(3 * GROUP_SIZE);
  await spool.append(records);
  await spool.drained();
  assert.equal(seal.most, GROUP_SIZE);
  assert.deepEqual(world.sink.stored, records);
});
