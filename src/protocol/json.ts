/**
 * Payloads as JSON objects.
 *
 * @module
 */

/** An object of a payload: keys and values that nobody has checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

// A byte order mark is kept, so that JSON.parse refuses it.
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const PLAIN = /^[ !#-[\]-~]*$/;

/** Whether a value is an object, not an array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Reads a payload that should hold a JSON object.
 *
 * @returns The object, or `undefined` for anything else: other JSON, no JSON, invalid UTF-8 (FRM-10).
 */
export function parseObject(payload: Uint8Array): JsonObject | undefined {
  let value: unknown;
  try {
    value = JSON.parse(UTF8.decode(payload));
  } catch {
    // Whatever a peer sent that is no JSON text: to be ignored, not to be reported.
    return undefined;
  }
  return isObject(value) ? value : undefined;
}

/** A string as JSON text. */
export function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}
