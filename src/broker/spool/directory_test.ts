import assert from "node:assert/strict";
import { Prng } from "../../simulation/prng.ts";
import { ensureDirectory } from "./directory.ts";
import { SimulatedFileSystem } from "./testing/simulated_file_system.ts";

function fileSystem(): SimulatedFileSystem {
  return new SimulatedFileSystem({ prng: new Prng(1) });
}

Deno.test("a directory is made with those above it, and all of it outlasts a crash", async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const before = new SimulatedFileSystem({ prng: new Prng(seed) });
    await ensureDirectory(before, "/a/b/c");
    const after = before.restart();
    assert.deepEqual(after.namesIn("/a/b/c"), []);
    await ensureDirectory(after, "/a/b/c");
  }
});

Deno.test("a directory above that may not be read is taken as it is", async () => {
  const disk = fileSystem();
  await disk.makeDirectory("/a");
  await disk.makeDirectory("/a/b");
  disk.fault = (operation, path) =>
    operation === "syncDirectory" && path === "/" ? "EACCES" : undefined;
  await ensureDirectory(disk, "/a/b");
});

Deno.test("a new directory whose entry cannot be synced is refused", async () => {
  for (const code of ["EACCES", "EIO"]) {
    const disk = fileSystem();
    disk.fault = (operation) => operation === "syncDirectory" ? code : undefined;
    await assert.rejects(ensureDirectory(disk, "/a"), { code });
  }
});

Deno.test("an old directory whose entry fails to sync for any other reason is refused", async () => {
  const disk = fileSystem();
  await disk.makeDirectory("/a");
  disk.fault = (operation) => operation === "syncDirectory" ? "EIO" : undefined;
  await assert.rejects(ensureDirectory(disk, "/a"), { code: "EIO" });
});

Deno.test("a directory that cannot be made is refused", async () => {
  const disk = fileSystem();
  disk.fault = (operation) => operation === "makeDirectory" ? "EROFS" : undefined;
  await assert.rejects(ensureDirectory(disk, "/a/b"), { code: "EROFS" });
});

Deno.test("a directory that is not found however often it is made is refused", async () => {
  const disk = fileSystem();
  let attempts = 0;
  disk.fault = (operation, path) => {
    if (operation !== "makeDirectory" || path !== "/a/b") return undefined;
    assert(++attempts < 10, "it is made again and again");
    return "ENOENT";
  };
  await assert.rejects(ensureDirectory(disk, "/a/b"), { code: "ENOENT" });
});
