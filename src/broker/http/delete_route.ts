import * as v from "valibot";
import { tenantOf } from "../tenancy.ts";
import { check, name } from "./input.ts";
import type { App, HttpParts } from "./parts.ts";

const schema = v.object({ queue: name });

/** `DELETE /api/v1/resources/queues/:queue`. */
export function addDeleteRoute(app: App, { deleter, gate }: HttpParts): void {
  app.delete("/api/v1/resources/queues/:queue", async (context) => {
    gate.requireOpen();
    const { queue } = check(schema, context.req.param());
    const existed = await deleter.delete(tenantOf(context), queue);
    return context.json({ deleted: existed, queue, existed });
  });
}
