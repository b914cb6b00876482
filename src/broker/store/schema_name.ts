/**
 * Checks the name of a schema, which becomes part of every statement.
 *
 * @throws {SyntaxError} If it is not a plain lowercase name of at most 63 characters, or one that
 * PostgreSQL keeps for itself.
 */
export function parseSchemaName(text: string): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(text) && !/^(pg_|information_schema$)/.test(text)) return text;
  throw new SyntaxError(
    `PG_SCHEMA must be 1 to 63 lowercase letters, digits and underscores, not begin with a digit ` +
      `or pg_, and not be information_schema, got "${text}"`,
  );
}

/** Writes a checked name as an identifier, for it may be one of SQL's own words. */
export function quoteSchemaName(name: string): string {
  return `"${name}"`;
}
