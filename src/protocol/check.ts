/**
 * Checks of what callers hand in, and how the errors show it.
 *
 * @module
 */

/** A field that must be a string. */
export function checkString(name: string, value: unknown): string {
  if (typeof value !== "string") {
    throw new TypeError(`${name} must be a string, got ${show(value)}`);
  }
  return value;
}

/** A field that must be a string of at least one character. */
export function checkNonEmpty(name: string, value: unknown): string {
  if (typeof value !== "string" || value === "") {
    throw new TypeError(`${name} must be a string that is not empty, got ${show(value)}`);
  }
  return value;
}

/** A value as an error message shows it: short, and never throwing itself. */
export function show(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > 64 ? `${value.slice(0, 64)}...` : value);
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "an array" : "an object";
    case "function":
      return "a function";
    default:
      return String(value);
  }
}
