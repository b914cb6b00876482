import assert from "node:assert/strict";
import { Prng } from "../simulation/prng.ts";
import { ENCRYPTED_QUEUES_FILE, EncryptedQueuesFile } from "./encrypted_queues_file.ts";
import { SimulatedFileSystem } from "./spool/testing/simulated_file_system.ts";
import type { EncryptedQueue } from "./store/store.ts";

const DIRECTORY = "/spool";

async function makeDisk(seed = 1): Promise<SimulatedFileSystem> {
  const disk = new SimulatedFileSystem({ prng: new Prng(seed), isChoppy: true });
  await disk.makeDirectory(DIRECTORY);
  await disk.syncDirectory("/");
  return disk;
}

function queues(...names: string[]): EncryptedQueue[] {
  return names.map((queue) => ({ tenant: "t", queue }));
}

const read = (disk: SimulatedFileSystem) => new EncryptedQueuesFile(disk, DIRECTORY).read();

Deno.test("what was written comes back, after a loss of power too", async () => {
  const disk = await makeDisk();
  assert.equal(await read(disk), undefined);
  const file = new EncryptedQueuesFile(disk, DIRECTORY);
  await file.write(queues("a", "b"));
  await file.write(queues("ü"));
  assert.deepEqual(await read(disk.restart()), queues("ü"));
});

Deno.test("what has not changed is not written again", async () => {
  const disk = await makeDisk();
  await new EncryptedQueuesFile(disk, DIRECTORY).write([]);
  const file = new EncryptedQueuesFile(disk, DIRECTORY);
  await file.read();
  const { operationCount } = disk;
  await file.write([]);
  assert.equal(disk.operationCount, operationCount);
});

Deno.test("nothing known, and too much to keep, come back as nothing known", async () => {
  const disk = await makeDisk();
  const file = new EncryptedQueuesFile(disk, DIRECTORY);
  await file.write(queues("a"));
  await file.write(undefined);
  assert.equal(await read(disk), undefined);
  await file.write(queues("a"));
  await file.write(queues(...Array.from({ length: 1001 }, (_, i) => `q${i}`)));
  assert.equal(await read(disk), undefined);
});

Deno.test("a loss of power at any moment leaves the old, the new, or nothing", async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const disk = await makeDisk(seed);
    const file = new EncryptedQueuesFile(disk, DIRECTORY);
    await file.write(queues("old"));
    disk.crashAt = disk.operationCount + 1 + seed % 8;
    await Promise.race([file.write(queues("new", "old")), disk.crashed]);
    const left = (await read(disk.restart()))?.map(({ queue }) => queue).join();
    assert.ok([undefined, "old", "new,old"].includes(left), left);
  }
});

for (const text of ["", "{", "{}", "[1]", '[{"tenant":1,"queue":"q"}]', "[null]"]) {
  Deno.test(`a file that holds ${JSON.stringify(text)} says nothing`, async () => {
    const disk = await makeDisk();
    const file = await disk.create(`${DIRECTORY}/${ENCRYPTED_QUEUES_FILE}`);
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at), at);
    await file.close();
    assert.equal(await read(disk), undefined);
  });
}
