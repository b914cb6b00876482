import { DEFAULT_TENANT } from "../protocol/tenant.ts";
import type { TenantId } from "./store/store.ts";

/**
 * The tenant that a request works within: without tenancy the default one, whatever its headers say.
 */
export function tenantOf(_context: unknown): TenantId {
  return DEFAULT_TENANT;
}

/**
 * The tenant that a frame touches here, or undefined where it touches none. Without tenancy only the
 * default one can exist, and an absent tenant means it (TEN-4, TEN-5).
 */
export function tenantOfFrame(tenant: string | undefined): TenantId | undefined {
  return tenant === undefined || tenant === DEFAULT_TENANT ? DEFAULT_TENANT : undefined;
}
