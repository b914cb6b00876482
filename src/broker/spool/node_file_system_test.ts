import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeAll } from "./file_system.ts";
import { nodeFileSystem as disk } from "./node_file_system.ts";

async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "queen-files-"));
  try {
    await body(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

Deno.test("a file is made, written, read, cut and removed", () =>
  withDirectory(async (directory) => {
    const path = join(directory, "f");
    const made = await disk.create(path);
    await writeAll(made, Uint8Array.of(1, 2, 3, 4), 0);
    await writeAll(made, Uint8Array.of(9), 1);
    await made.sync();
    await made.truncate(3);
    await made.close();
    await disk.syncDirectory(directory);

    const opened = await disk.open(path);
    const buffer = new Uint8Array(8);
    assert.equal(await opened.read(buffer, 1), 2);
    assert.deepEqual(buffer.subarray(0, 2), Uint8Array.of(9, 3));
    assert.equal(await opened.read(buffer, 3), 0);
    await opened.close();
    assert.deepEqual(await disk.list(directory), [{ name: "f", isDirectory: false, bytes: 3 }]);
    await disk.remove(path);
    assert.deepEqual(await disk.list(directory), []);
  }));

Deno.test("files and directories are for their owner alone", () =>
  withDirectory(async (directory) => {
    const [folder, path] = [join(directory, "d"), join(directory, "f")];
    await disk.makeDirectory(folder);
    await (await disk.create(path)).close();
    assert.equal((await stat(folder)).mode & 0o077, 0);
    assert.equal((await stat(path)).mode & 0o077, 0);
    const listed = await disk.list(directory);
    assert.deepEqual(listed.find(({ name }) => name === "d"), {
      name: "d",
      isDirectory: true,
      bytes: 0,
    });
  }));

Deno.test("errors carry the system's code", () =>
  withDirectory(async (directory) => {
    const path = join(directory, "f");
    await (await disk.create(path)).close();
    await assert.rejects(disk.create(path), { code: "EEXIST" });
    await assert.rejects(disk.makeDirectory(directory), { code: "EEXIST" });
    const none = join(directory, "none");
    await assert.rejects(disk.open(none), { code: "ENOENT" });
    await assert.rejects(disk.remove(none), { code: "ENOENT" });
    await assert.rejects(disk.list(none), { code: "ENOENT" });
    await assert.rejects(disk.syncDirectory(none), { code: "ENOENT" });
    await assert.rejects(disk.makeDirectory(join(none, "d")), { code: "ENOENT" });
  }));

Deno.test("a disk that takes nothing and says nothing is not asked for ever", async () => {
  const file = {
    read: () => Promise.resolve(0),
    write: () => Promise.resolve(0),
    truncate: () => Promise.resolve(),
    sync: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  await assert.rejects(writeAll(file, Uint8Array.of(1), 0), /took none/);
});
