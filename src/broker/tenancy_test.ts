import assert from "node:assert/strict";
import { DEFAULT_TENANT } from "../protocol/tenant.ts";
import { tenantOf, tenantOfFrame } from "./tenancy.ts";

Deno.test("a request works within the default tenant, whatever its headers say", () => {
  assert.equal(tenantOf({ "x-queen-tenant": "other" }), DEFAULT_TENANT);
});

Deno.test("a frame without a tenant, or with the default one, touches the default one", () => {
  assert.equal(tenantOfFrame(undefined), DEFAULT_TENANT);
  assert.equal(tenantOfFrame(DEFAULT_TENANT), DEFAULT_TENANT);
});

Deno.test("a frame with another tenant touches nothing", () => {
  assert.equal(tenantOfFrame("aaaaaaaa-0000-0000-0000-000000000001"), undefined);
});
