/**
 * A lock that the end of a process releases, however it ends, by sockets alone.
 *
 * Each process that wants the lock listens on a Unix socket of its own in the directory, under a random
 * name, and then looks at the others there. One that takes a connection belongs to a living process.
 * One that refuses it is dead, and stays so: a socket listens before it gets its name, and never again
 * once its process is gone. Who sees no other alive has the lock.
 *
 * Two processes cannot both have it: each shows itself before it looks, so the one that looked last saw
 * the other. Of several that start at once the one with the lowest name waits for the others, who give
 * up when they see it; so one of them gets the lock. No file is ever taken over, so there is no moment
 * in which a fresh lock could be mistaken for a stale one.
 *
 * It holds among processes of one kernel that see the same directory, in different containers too. It
 * does not hold between machines that share a directory by a network file system.
 *
 * @module
 */

import { readdir, rename, unlink } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import type { Clock, Random } from "../mesh/runtime.ts";
import { encodeHex } from "../protocol/hex.ts";
import { codeOf, SpoolInUseError } from "../broker/spool/errors.ts";
import type { AcquireSpoolLock, SpoolLock } from "../broker/spool/lock.ts";
import { withSocketPath } from "./socket_path.ts";

/** How long the one with the lowest name waits for the others, in milliseconds. */
const WAIT_MS_MAX = 2000;

/** How often it looks, in milliseconds. */
const LOOK_MS = 25;

const NAME = /^lock-[0-9a-f]{16}$/;

/** The name of a socket that does not listen yet. */
const HIDDEN_SUFFIX = ".new";

/** What a lock by sockets is made of. */
export interface SocketLockOptions {
  /** Time. */
  readonly clock: Clock;
  /** For names. */
  readonly random: Random;
}

/**
 * Makes locks by sockets. Acquiring one rejects with {@linkcode SpoolInUseError} where another process
 * holds it, and with the file system's error where it has no sockets.
 */
export function socketLock({ clock, random }: SocketLockOptions): AcquireSpoolLock {
  return async (directory) => {
    const name = `lock-${encodeHex(random(new Uint8Array(8)))}`;
    const lock = await show(directory, name);
    try {
      await outlastOthers(directory, { name, clock });
      return lock;
    } catch (error) {
      await lock.release();
      throw error;
    }
  };
}

/** Listens, and only then shows itself under `name`. */
async function show(directory: string, name: string): Promise<SpoolLock> {
  const shown = join(directory, name);
  const hidden = shown + HIDDEN_SUFFIX;
  const server = await withSocketPath(hidden, listen);
  const release = async () => {
    await removeIfThere(shown);
    await close(server);
  };
  try {
    await rename(hidden, shown);
  } catch (error) {
    await release();
    throw error;
  }
  return { release };
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    // That a connection is taken is the whole answer, and the kernel takes it by itself. So one that
    // this process then fails to accept, which is an error too, does no harm.
    const server = createServer((socket) => socket.destroy());
    server.on("error", reject);
    server.listen(path, () => resolve(server));
    // The lock must not keep a process alive that has nothing else to do.
    server.unref();
  });
}

/** Resolves once no other is alive. */
async function outlastOthers(
  directory: string,
  { name, clock }: { readonly name: string; readonly clock: Clock },
): Promise<void> {
  const deadline = clock.now() + WAIT_MS_MAX;
  for (;;) {
    const alive = await findAlive(directory, name);
    if (alive.length === 0) return;
    if (alive.some((other) => other < name) || clock.now() > deadline) {
      throw new SpoolInUseError(
        `Another process works on the spool in ${directory}; stop it, or set another FILE_BUFFER_DIR`,
      );
    }
    await new Promise<void>((resolve) => clock.setTimer(LOOK_MS, resolve));
  }
}

/** The names of the others that are alive. Those that are dead are removed. */
async function findAlive(directory: string, ownName: string): Promise<string[]> {
  const alive: string[] = [];
  for (const name of await readdir(directory)) {
    if (name === ownName || !NAME.test(name)) continue;
    const path = join(directory, name);
    if (await withSocketPath(path, isAlive)) alive.push(name);
    else await removeIfThere(path);
  }
  return alive;
}

function isAlive(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => socket.destroy());
    // Whatever else it says, such as that the line is full, somebody may be there.
    let isThere = true;
    socket.on("error", (error) => {
      isThere = !["ECONNREFUSED", "ENOENT"].includes(codeOf(error) ?? "");
    });
    socket.on("close", () => resolve(isThere));
  });
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
