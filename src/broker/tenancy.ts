/**
 * Whose queues a request or a frame is about.
 *
 * @module
 */

import { DEFAULT_TENANT, parseTenant } from "../protocol/tenant.ts";
import { ApiError } from "./http/api_error.ts";
import type { TenantId } from "./store/store.ts";

/** The header by which a request names its tenant. */
export const TENANT_HEADER = "x-queen-tenant";

/** What of a request's context says its tenant. */
export interface TenantSource {
  /** Whether requests name their tenant. */
  readonly env: { readonly tenancy: boolean };
  /** The request. */
  readonly req: { header(name: string): string | undefined };
}

/**
 * The tenant that a request works within: without tenancy the default one, whatever its headers say;
 * with it the one that {@linkcode TENANT_HEADER} names, or the default one where that is absent or
 * blank.
 *
 * @throws {ApiError} with status 400 where the header is no UUID.
 */
export function tenantOf({ env, req }: TenantSource): TenantId {
  if (!env.tenancy) return DEFAULT_TENANT;
  const named = req.header(TENANT_HEADER)?.trim();
  if (!named) return DEFAULT_TENANT;
  const tenant = parseTenant(named);
  if (tenant === undefined) {
    throw new ApiError(400, `invalid ${TENANT_HEADER} header (must be a UUID)`);
  }
  return tenant;
}

/**
 * The tenant that a frame touches here: undefined for each that holds what it names (TEN-2), null for
 * none at all. Without tenancy only the default one can exist, and an absent tenant means it (TEN-4,
 * TEN-5).
 */
export function tenantOfFrame(
  tenant: string | undefined,
  { tenancy }: { readonly tenancy: boolean },
): TenantId | undefined | null {
  if (tenancy) return tenant;
  return tenant === undefined || tenant === DEFAULT_TENANT ? DEFAULT_TENANT : null;
}
