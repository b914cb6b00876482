import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import * as v from "valibot";
import { CAPABILITIES, type Capability } from "./case.ts";
import { UsageError } from "./usage_error.ts";

/** An implementation, and how to run a node of it. */
export interface Target {
  /** What reports call it. */
  readonly name: string;
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** Where it runs. */
  readonly cwd: string;
  /** Environment variables for every node, under those that the suite sets. */
  readonly env: Readonly<Record<string, string>>;
  /** What it has. */
  readonly capabilities: ReadonlySet<Capability>;
  /** Where a node answers 200 once it is ready: a path, or a URL in which `{PORT}` stands for its HTTP port. */
  readonly ready: string;
  /** Whether its nodes need a database. */
  readonly database: boolean;
}

/** What a target without a word about it has. */
const DEFAULT_CAPABILITIES: readonly Capability[] = CAPABILITIES;

const capabilitiesSchema = v.pipe(
  v.array(v.picklist(CAPABILITIES)),
  v.includes("mesh", `must include "mesh": without one there is nothing to judge`),
);

const schema = v.strictObject({
  name: v.optional(v.pipe(v.string(), v.nonEmpty("must not be empty"))),
  command: v.pipe(
    v.array(v.string()),
    v.minLength(1, "must name a program"),
    v.check(([program]) => program !== "", "must name a program"),
  ),
  cwd: v.optional(v.string(), "."),
  env: v.optional(v.record(v.string(), v.string()), {}),
  capabilities: v.optional(capabilitiesSchema, [...DEFAULT_CAPABILITIES]),
  ready: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^(\/|https?:\/\/)/, `must begin with "/", "http://" or "https://"`),
    ),
    "/health",
  ),
  database: v.optional(v.boolean()),
});

/**
 * Reads a target's description.
 *
 * Relative paths, of `cwd` and of a program with a slash in its name, start at the file's folder.
 *
 * @throws {UsageError} If the file cannot be read or says something unusable; it names the key.
 */
export async function readTarget(path: string): Promise<Target> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new UsageError(`the target file ${path} cannot be read: ${(error as Error).message}`);
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`the target file ${path} is not JSON: ${(error as Error).message}`);
  }
  const result = v.safeParse(schema, json);
  if (!result.success) {
    const [issue] = result.issues;
    const key = v.getDotPath(issue);
    throw new UsageError(
      `the target file ${path}: ${key === null ? "" : `"${key}" `}${issue.message}`,
    );
  }
  const { name = path, command, cwd, env, capabilities, ready, database } = result.output;
  return {
    name,
    command,
    cwd: resolve(dirname(path), cwd),
    env,
    capabilities: new Set(capabilities),
    ready,
    database: database ?? capabilities.includes("broker"),
  };
}

/** The target that a command line gives. */
export function commandTarget(
  command: readonly string[],
  capabilities: readonly Capability[] = DEFAULT_CAPABILITIES,
): Target {
  return {
    name: command.join(" "),
    command,
    cwd: ".",
    env: {},
    capabilities: new Set(capabilities),
    ready: "/health",
    database: capabilities.includes("broker"),
  };
}

/** Reads `mesh,notify` as capabilities. */
export function parseCapabilities(text: string): Capability[] {
  const names = text.split(",").map((each) => each.trim()).filter((each) => each !== "");
  const result = v.safeParse(capabilitiesSchema, names);
  if (!result.success) {
    throw new UsageError(
      `--capabilities "${text}": ${result.issues[0].message}; there are ${CAPABILITIES.join(", ")}`,
    );
  }
  return result.output;
}
