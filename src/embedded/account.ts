/**
 * The account that the embedded PostgreSQL runs under.
 *
 * @module
 */

import { readFile } from "node:fs/promises";
import process from "node:process";

/** A user and its group, as numbers. */
export interface Account {
  /** The user's number. */
  readonly uid: number;
  /** The number of the user's group. */
  readonly gid: number;
}

/**
 * Resolves to the account to run PostgreSQL under: `nobody` where this process is root, because
 * PostgreSQL refuses root, and undefined (this process's own) otherwise.
 */
export async function postgresAccount(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  return parseAccount(await readFile("/etc/passwd", "utf8"), "nobody");
}

/**
 * Finds an account in the text of a passwd file.
 *
 * @throws {RangeError} If it is not there.
 */
export function parseAccount(passwd: string, name: string): Account {
  for (const line of passwd.split("\n")) {
    const fields = line.split(":");
    if (fields[0] !== name) continue;
    const uid = Number(fields[2]);
    const gid = Number(fields[3]);
    if (Number.isInteger(uid) && Number.isInteger(gid)) return { uid, gid };
  }
  throw new RangeError(
    `PostgreSQL cannot run as root, and there is no account "${name}" to run it under: ` +
      `start this program as an ordinary user`,
  );
}
