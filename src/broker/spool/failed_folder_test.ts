import assert from "node:assert/strict";
import { Prng } from "../../simulation/prng.ts";
import { settle } from "../../simulation/virtual_clock.ts";
import { FailedFolder } from "./failed_folder.ts";
import { SimulatedFileSystem } from "./testing/simulated_file_system.ts";

const CONTENT = Uint8Array.from({ length: 100 }, (_, i) => i);
const STRETCH = { kind: "record", logId: "log", segment: 1, offset: 10, end: 90 } as const;
const KEPT = "/spool/failed/log-1-10.record";

/** A disk with a file to keep a part of. */
async function withSource(seed: number): Promise<SimulatedFileSystem> {
  const disk = new SimulatedFileSystem({ prng: new Prng(seed), isChoppy: true });
  await disk.makeDirectory("/spool");
  await disk.syncDirectory("/");
  const file = await disk.create("/spool/source");
  for (let done = 0; done < CONTENT.length;) done += await file.write(CONTENT.subarray(done), done);
  await file.sync();
  await file.close();
  await disk.syncDirectory("/spool");
  return disk;
}

async function keep(disk: SimulatedFileSystem): Promise<FailedFolder> {
  const folder = await FailedFolder.open(disk, "/spool");
  const file = await disk.open("/spool/source");
  await folder.keep({ ...STRETCH, file });
  await file.close();
  return folder;
}

Deno.test("what is kept is counted, now and at the next start", async () => {
  const disk = await withSource(1);
  const folder = await keep(disk);
  assert.deepEqual(disk.contentOf(KEPT), CONTENT.slice(10, 90));
  const expected = { count: 1, totalBytes: 80, recordCount: 1 };
  assert.deepEqual(folder.files, expected);
  assert.deepEqual((await FailedFolder.open(disk, "/spool")).files, expected);
  assert.deepEqual((await keep(disk)).files, expected, "kept once more");
});

Deno.test("what is kept outlasts a crash, and a crash while it is kept once more", async () => {
  for (let seed = 1; seed <= 30; seed++) {
    for (let at = 1; at <= 25; at++) {
      const first = await withSource(seed);
      await keep(first);
      const second = first.restart();
      assert.deepEqual(second.contentOf(KEPT), CONTENT.slice(10, 90));
      second.crashAt = at;
      void keep(second);
      await settle();
      const third = second.restart();
      assert.deepEqual(third.contentOf(KEPT), CONTENT.slice(10, 90), `seed ${seed}, at ${at}`);
    }
  }
});

Deno.test("what a crash left half kept is completed", async () => {
  for (let seed = 1; seed <= 30; seed++) {
    for (let at = 1; at <= 25; at++) {
      const first = await withSource(seed);
      first.crashAt = first.operationCount + at;
      void keep(first);
      await settle();
      const second = first.restart();
      const folder = await keep(second);
      assert.deepEqual(second.contentOf(KEPT), CONTENT.slice(10, 90), `seed ${seed}, at ${at}`);
      assert.deepEqual(folder.files, { count: 1, totalBytes: 80, recordCount: 1 });
    }
  }
});
