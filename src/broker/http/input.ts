/**
 * Checks what clients send. Each refusal names the field and says the rule.
 *
 * @module
 */

import * as v from "valibot";
import { ApiError } from "./api_error.ts";
import { readJson, type Shape } from "./raw_json.ts";

/** A name is at most this long, in bytes of UTF-8. */
const NAME_BYTES_MAX = 512;

/** Control characters, and surrogates without their partner, which UTF-8 cannot say. */
const UNFIT = /[\p{Cc}\p{Cs}]/u;

const encoder = new TextEncoder();

/** What is wrong with a queue, partition, group or transactionId; undefined where nothing is. */
export function nameFault(name: string): string | undefined {
  if (name === "") return "must not be empty";
  // A UTF-16 unit takes three bytes at most.
  if (name.length > NAME_BYTES_MAX / 3) {
    const isLonger = name.length > NAME_BYTES_MAX || encoder.encode(name).length > NAME_BYTES_MAX;
    if (isLonger) return `must be at most ${NAME_BYTES_MAX} bytes of UTF-8`;
  }
  return UNFIT.test(name) ? "must hold no control characters" : undefined;
}

/** A queue, partition, group or transactionId. */
export const name: v.GenericSchema<string> = text(nameFault);

/** The same, or `""` for none. */
export const nameOrEmpty: v.GenericSchema<string> = text((text) =>
  text === "" ? undefined : nameFault(text)
);

function text(fault: (text: string) => string | undefined): v.GenericSchema<string> {
  return v.pipe(
    v.string("must be a string"),
    v.rawCheck(({ dataset, addIssue }) => {
      const message = dataset.typed ? fault(dataset.value) : undefined;
      if (message !== undefined) addIssue({ message });
    }),
  );
}

/** A name, or nothing: `null` and `""` count as left out. */
export const optionalName: v.GenericSchema<string | null | undefined, string | undefined> = v.pipe(
  v.nullish(nameOrEmpty),
  v.transform((text) => text || undefined),
);

/** Any text, or nothing: `null` and `""` count as left out. */
export const optionalText: v.GenericSchema<string | null | undefined, string | undefined> = v.pipe(
  v.nullish(v.string("must be a string")),
  v.transform((text) => text || undefined),
);

/** A whole number in a query string; left out where it is empty. */
export function queryInteger<Fallback extends number | undefined>(
  { min, max, fallback }: {
    readonly min: number;
    readonly max: number;
    readonly fallback: Fallback;
  },
): v.GenericSchema<string | undefined, number | Fallback> {
  const message = `must be a whole number from ${min} to ${max}`;
  return v.pipe(
    v.optional(v.string(), ""),
    v.rawTransform(({ dataset: { value: text }, addIssue }) => {
      if (text === "") return fallback;
      const number = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
      if (!(number >= min && number <= max)) addIssue({ message });
      return number;
    }),
  );
}

/** A switch in a query string; off where it is left out or empty. */
export const queryBoolean: v.GenericSchema<string | undefined, boolean> = v.pipe(
  v.optional(v.string(), ""),
  v.picklist(["", "true", "1", "false", "0"], "must be true or false"),
  v.transform((text) => text === "true" || text === "1"),
);

/**
 * Checks `input` against `schema`.
 *
 * @throws {ApiError} with status 400, naming the field.
 */
export function check<Schema extends v.GenericSchema>(
  schema: Schema,
  input: unknown,
): v.InferOutput<Schema> {
  const result = v.safeParse(schema, input, { abortEarly: true });
  if (result.success) return result.output;
  const [issue] = result.issues;
  // An object tells of a key that is missing in its own name.
  const isMissing = issue.received === "undefined" && issue.expected?.startsWith('"');
  throw new ApiError(400, `${pathOf(issue)}: ${isMissing ? "is required" : issue.message}`);
}

/** What of a body is read, and how it is checked. */
export interface BodyFormat<Schema extends v.GenericSchema> {
  /** What of it becomes values. */
  readonly shape: Shape;
  /** What those must be. */
  readonly schema: Schema;
}

/**
 * Reads a body.
 *
 * @throws {ApiError} with status 400 where it is no JSON or does not fit.
 */
export function parseBody<Schema extends v.GenericSchema>(
  text: string,
  { shape, schema }: BodyFormat<Schema>,
): v.InferOutput<Schema> {
  let input: unknown;
  try {
    input = readJson(text, shape);
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new ApiError(400, `body: is not valid JSON: ${error.message}`);
    }
    if (error instanceof RangeError) {
      throw new ApiError(400, `body: too many elements: ${error.message}`);
    }
    throw error;
  }
  // A schema of an object would take it for one without members.
  if (Array.isArray(input)) throw new ApiError(400, "body: must be an object");
  return check(schema, input);
}

/** Where an issue is, like `items[3].queue`. */
function pathOf(issue: v.BaseIssue<unknown>): string {
  let path = "";
  for (const { key } of issue.path ?? []) {
    if (typeof key === "number") path += `[${key}]`;
    else path += path === "" ? String(key) : `.${String(key)}`;
  }
  return path === "" ? "body" : path;
}
