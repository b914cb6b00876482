import * as v from "valibot";
import { tenantOf } from "../tenancy.ts";
import { type BodyFormat, check, parseBody } from "./input.ts";
import type { App, HttpParts } from "./parts.ts";

/** By how much a lease is made longer where nobody says, in seconds. */
const SECONDS = 60;

const INT32_MAX = 2_147_483_647;

const RULE = `must be a whole number from 1 to ${INT32_MAX}`;

const schema = v.object({
  seconds: v.nullish(v.pipe(
    v.number(RULE),
    v.check((seconds) => Number.isInteger(seconds) && seconds >= 1 && seconds <= INT32_MAX, RULE),
  )),
}, "must be an object");

const FORMAT: BodyFormat<typeof schema> = { shape: { members: { seconds: "scalar" } }, schema };

const pathSchema = v.object({ leaseId: v.string() });

/** `POST /api/v1/lease/:leaseId/extend`. */
export function addLeaseRoutes(app: App, { store, gate, bodies }: HttpParts): void {
  app.post("/api/v1/lease/:leaseId/extend", async (context) => {
    gate.requireOpen();
    const { leaseId } = check(pathSchema, context.req.param());
    const tenant = tenantOf(context);
    return await bodies.read(context.req.raw, async (body) => {
      const seconds = body === "" ? SECONDS : parseBody(body, FORMAT).seconds ?? SECONDS;
      const expiresAt = await store.extendLease(tenant, leaseId, seconds) ?? null;
      return context.json({
        leaseId,
        success: expiresAt !== null,
        renewed: expiresAt !== null,
        newExpiresAt: expiresAt,
        expiresAt,
        lease_expires_at: expiresAt,
      });
    });
  });
}
