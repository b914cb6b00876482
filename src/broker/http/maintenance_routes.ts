import * as v from "valibot";
import type { FlagName } from "../store/store.ts";
import { ApiError } from "./api_error.ts";
import { type BodyFormat, parseBody } from "./input.ts";
import type { App, HttpParts, RouteContext } from "./parts.ts";

const schema = v.object({ enabled: v.optional(v.unknown()) }, "must be an object");

const FORMAT: BodyFormat<typeof schema> = {
  shape: { members: { enabled: "scalar" } },
  schema,
};

/** `/api/v1/system/maintenance` and `/api/v1/system/maintenance/pop`. */
export function addMaintenanceRoutes(app: App, parts: HttpParts): void {
  app.get("/api/v1/system/maintenance", (context) => context.json(overview(parts)));
  app.post("/api/v1/system/maintenance", async (context) => {
    const enabled = await flip(context, parts, "maintenance");
    const { bufferedMessages, bufferHealthy } = overview(parts);
    const message = enabled
      ? "Maintenance is on: pushes are spooled on every replica"
      : "Maintenance is off: the spools drain";
    return context.json({ maintenanceMode: enabled, bufferedMessages, bufferHealthy, message });
  });
  app.post("/api/v1/system/maintenance/pop", async (context) => {
    const enabled = await flip(context, parts, "pop_maintenance");
    const message = enabled
      ? "Pop maintenance is on: pops find nothing on any replica"
      : "Pop maintenance is off";
    return context.json({ popMaintenanceMode: enabled, message });
  });
}

async function flip(
  context: RouteContext,
  { upkeep, bodies }: HttpParts,
  name: FlagName,
): Promise<boolean> {
  return await bodies.read(context.req.raw, async (body) => {
    const { enabled } = parseBody(body, FORMAT);
    // Clients know this one reply by its text.
    if (typeof enabled !== "boolean") throw new ApiError(400, "enabled (boolean) is required");
    await upkeep.flags.set(name, enabled);
    return enabled;
  });
}

function overview({ upkeep, modes }: HttpParts) {
  const { maintenance, popMaintenance } = modes();
  const { stats } = upkeep.spooler;
  const { pendingCount = 0, failedCount = 0, isHealthy = true } = stats ?? {};
  const { failedFiles = { count: 0, totalBytes: 0 } } = stats ?? {};
  return {
    maintenanceMode: maintenance,
    popMaintenanceMode: popMaintenance,
    bufferedMessages: pendingCount,
    bufferHealthy: isHealthy,
    bufferStats: {
      pendingCount,
      failedCount,
      dbHealthy: upkeep.isPostgresHealthy,
      failedFiles,
    },
  };
}
