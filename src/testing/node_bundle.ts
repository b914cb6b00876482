/**
 * Runs our code under Node from a test that runs under Deno: bundled into one file, since Node 20
 * reads no TypeScript.
 *
 * @module
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A file that Node can run. */
export interface NodeBundle {
  /** Where it is. */
  readonly path: string;
  /** Deletes it. */
  remove(): Promise<void>;
}

/** How to bundle. */
export interface BundleOptions {
  /** The path of the `deno.json` that names the imports; the one that is found by default. */
  readonly config?: string;
}

/**
 * Bundles an entry point with all that it imports, packages included.
 *
 * @param entry The entry point, a file of this project, or one that `config` knows the imports of.
 * @returns The bundle, in a temporary directory of its own.
 * @throws {Error} Where it cannot be bundled, with what the bundler says.
 */
export async function bundleForNode(
  entry: URL,
  { config }: BundleOptions = {},
): Promise<NodeBundle> {
  const directory = await Deno.makeTempDir({ prefix: "queen-mesh-node-" });
  const path = join(directory, "bundle.mjs");
  function remove(): Promise<void> {
    return Deno.remove(directory, { recursive: true });
  }
  try {
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        "bundle",
        "--quiet",
        "--platform",
        "deno",
        ...(config === undefined ? [] : ["--config", config]),
        "--output",
        path,
        fileURLToPath(entry),
      ],
      stdin: "null",
    }).output();
    if (!success) throw new Error(`Cannot bundle ${entry}: ${new TextDecoder().decode(stderr)}`);
  } catch (error) {
    await remove();
    throw error;
  }
  return { path, remove };
}

/** How to run a program under Node. */
export interface RunNodeOptions {
  /** Arguments of the program. */
  readonly args?: readonly string[];
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Kills the process. */
  readonly signal: AbortSignal;
}

/** How a program ended. */
export interface NodeExit {
  /** Its exit code; null where a signal ended it. */
  readonly code: number | null;
  /** All that it wrote to its standard output. */
  readonly stdout: string;
  /** All that it wrote to its standard error. */
  readonly stderr: string;
}

/**
 * Runs a file with the `node` that is found on PATH, to its end.
 *
 * @param path The file, as {@linkcode bundleForNode} makes it.
 * @param options Arguments, environment, and the signal that kills it.
 * @returns How it ended. That it was killed shows in the code alone.
 */
export async function runNode(path: string, options: RunNodeOptions): Promise<NodeExit> {
  const { args = [], env = {}, signal } = options;
  const { code, signal: killedBy, stdout, stderr } = await new Deno.Command("node", {
    args: [path, ...args],
    env,
    stdin: "null",
    signal,
  }).output();
  const decoder = new TextDecoder();
  return {
    code: killedBy === null ? code : null,
    stdout: decoder.decode(stdout),
    stderr: decoder.decode(stderr),
  };
}
