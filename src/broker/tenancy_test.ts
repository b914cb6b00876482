import assert from "node:assert/strict";
import { Hono } from "hono";
import { DEFAULT_TENANT } from "../protocol/tenant.ts";
import { ApiError } from "./http/api_error.ts";
import { TENANT_HEADER, tenantOf, tenantOfFrame } from "./tenancy.ts";

const OTHER = "aaaaaaaa-0000-0000-0000-000000000001";

interface Env {
  readonly Bindings: { readonly tenancy: boolean };
}

/** The tenant of a request with this header, or the refusal. */
async function askedFor(header: string | undefined, tenancy = true): Promise<string> {
  const app = new Hono<Env>();
  app.get("/", (context) => context.text(tenantOf(context)));
  app.onError((error, context) => {
    assert(error instanceof ApiError);
    return context.text(`${error.status} ${error.message}`);
  });
  const headers = header === undefined ? {} : { [TENANT_HEADER]: header };
  const response = await app.fetch(new Request("http://replica/", { headers }), { tenancy });
  return await response.text();
}

Deno.test("without tenancy a request works within the default tenant, whatever its header says", async () => {
  for (const header of [undefined, OTHER, "", "no tenant"]) {
    assert.equal(await askedFor(header, false), DEFAULT_TENANT);
  }
});

Deno.test("a request works within the tenant that its header names, in either case", async () => {
  assert.equal(await askedFor(OTHER), OTHER);
  assert.equal(await askedFor(` ${OTHER.toUpperCase()} `), OTHER);
});

Deno.test("a request whose tenant header is absent or blank works within the default tenant", async () => {
  for (const header of [undefined, "", "  "]) assert.equal(await askedFor(header), DEFAULT_TENANT);
});

Deno.test("a request whose tenant header is malformed is refused", async () => {
  for (const header of ["x", OTHER.slice(1), `{${OTHER}}`, `${OTHER}, ${OTHER}`, `${OTHER}0`]) {
    const refusal = "400 invalid x-queen-tenant header (must be a UUID)";
    assert.equal(await askedFor(header), refusal, header);
  }
});

Deno.test("without tenancy a frame touches the default tenant where it names it or none", () => {
  const off = { tenancy: false };
  assert.equal(tenantOfFrame(undefined, off), DEFAULT_TENANT);
  assert.equal(tenantOfFrame(DEFAULT_TENANT, off), DEFAULT_TENANT);
  assert.equal(tenantOfFrame(OTHER, off), null);
});

Deno.test("with tenancy a frame touches the tenant that it names, and every one where it names none", () => {
  const on = { tenancy: true };
  assert.equal(tenantOfFrame(undefined, on), undefined);
  assert.equal(tenantOfFrame(DEFAULT_TENANT, on), DEFAULT_TENANT);
  assert.equal(tenantOfFrame(OTHER, on), OTHER);
});
