import * as v from "valibot";
import { tenantOf } from "../tenancy.ts";
import { type BodyFormat, name, nameOrEmpty, parseBody } from "./input.ts";
import type { App, HttpParts } from "./parts.ts";

const schema = v.object({ queue: name, partition: v.nullish(nameOrEmpty) }, "must be an object");

const FORMAT: BodyFormat<typeof schema> = {
  shape: { members: { queue: "scalar", partition: "scalar" } },
  schema,
};

/** `POST /internal/api/notify`: wakes whoever waits for the queue, here and elsewhere. */
export function addNotifyRoute(app: App, { wakes, bodies }: HttpParts): void {
  app.post("/internal/api/notify", async (context) => {
    const tenant = tenantOf(context);
    return await bodies.read(context.req.raw, (body) => {
      const { queue, partition } = parseBody(body, FORMAT);
      wakes.announce(tenant, [{ queue, partition: partition ?? "" }]);
      return context.json({ status: "ok" });
    });
  });
}
