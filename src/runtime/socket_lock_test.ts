import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "./system.ts";
import { SpoolInUseError } from "../broker/spool/errors.ts";
import type { SpoolLock } from "../broker/spool/lock.ts";
import { socketLock } from "./socket_lock.ts";

const acquire = socketLock({ clock: systemClock, random: systemRandom });

async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "queen-lock-"));
  try {
    await body(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

Deno.test("a lock is held by one, and by another once it is released", () =>
  withDirectory(async (directory) => {
    for (let round = 0; round < 3; round++) {
      const lock = await acquire(directory);
      await assert.rejects(acquire(directory), SpoolInUseError);
      await lock.release();
      assert.deepEqual(await readdir(directory), []);
    }
  }));

Deno.test("of many that ask at once exactly one gets the lock", () =>
  withDirectory(async (directory) => {
    for (let round = 0; round < 10; round++) {
      const results = await Promise.allSettled(Array.from({ length: 6 }, () => acquire(directory)));
      const locks: SpoolLock[] = [];
      for (const result of results) {
        if (result.status === "fulfilled") locks.push(result.value);
        else assert.ok(result.reason instanceof SpoolInUseError, String(result.reason));
      }
      assert.equal(locks.length, 1);
      await locks[0]!.release();
      assert.deepEqual(await readdir(directory), []);
    }
  }));

Deno.test("a lock in a directory that is not there is refused with what the system says", () =>
  withDirectory(async (directory) => {
    await assert.rejects(acquire(join(directory, "none")), (error) => {
      assert.ok(!(error instanceof SpoolInUseError));
      return error instanceof Error;
    });
  }));

Deno.test("files of other names are no locks, and stay", () =>
  withDirectory(async (directory) => {
    for (const name of ["lock", "lock-x", "lock-0123456789abcdef.new"]) {
      await writeFile(join(directory, name), "");
    }
    const lock = await acquire(directory);
    await lock.release();
    assert.equal((await readdir(directory)).length, 3);
  }));
