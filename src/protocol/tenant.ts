/**
 * Tenants as frames name them: absent, the default one, or another.
 *
 * @module
 */

/** The tenant of a database without tenants. Frames that are sent name it too (TEN-1). */
export const DEFAULT_TENANT = "00000000-0000-0000-0000-000000000001";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Reads the tenant of a frame that was received.
 *
 * @param value The frame's `tenant`, whatever it is.
 * @returns The tenant as a lowercase UUID, or `undefined` where the value is no 8-4-4-4-12 hex UUID
 * and so counts as absent (TEN-3). Absent is not the default tenant: the frame then concerns every
 * tenant that holds a queue of that name (TEN-2).
 *
 * @example
 * ```ts
 * import { parseTenant } from "@queen/mesh";
 * import assert from "node:assert/strict";
 *
 * const tenant = parseTenant("AABBCCDD-1122-3344-5566-778899AABBCC");
 * assert.equal(tenant, "aabbccdd-1122-3344-5566-778899aabbcc");
 * assert.equal(parseTenant(""), undefined);
 * ```
 */
export function parseTenant(value: unknown): string | undefined {
  // Nearly every frame names the default tenant, and comparing is cheaper than matching.
  if (value === DEFAULT_TENANT) return DEFAULT_TENANT;
  return typeof value === "string" && UUID.test(value) ? value.toLowerCase() : undefined;
}
