/**
 * The errors of a simulated network.
 *
 * @module
 */

/** An error as a runtime's sockets give it: with a `code` such as `ECONNREFUSED`. */
export function networkError(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code });
}
