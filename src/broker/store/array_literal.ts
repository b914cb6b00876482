/**
 * Writes an array as PostgreSQL reads it from text, for a parameter that is cast to `text[]` or to
 * an array of what its elements are the text of.
 */
export function arrayLiteral(values: readonly (string | null)[]): string {
  let text = "{";
  for (const value of values) {
    if (text.length > 1) text += ",";
    text += value === null ? "NULL" : `"${value.replace(/[\\"]/g, "\\$&")}"`;
  }
  return text + "}";
}
