import { StoreUnavailableError } from "../store/store.ts";
import { ENGINE, VERSION } from "../version.ts";
import type { App, HttpParts, RouteContext } from "./parts.ts";

/** `/health`, `/status`, and the routes that show how the mesh stands (protocol, section 8). */
export function addObserveRoutes(app: App, parts: HttpParts): void {
  app.get("/status", (context) => context.json({ status: "ok", engine: ENGINE }));
  app.get("/health", (context) => health(context, parts));
  const stats = (context: RouteContext) =>
    context.json({ ...parts.meshStats(), ...modes(parts), waker: waker(parts) });
  app.get("/internal/api/shared-state/stats", stats);
  app.get("/internal/api/inter-instance/stats", stats);
  app.get("/api/v1/system/shared-state", (context) =>
    context.json({
      enabled: false,
      reason: "single_node_segments_broker",
      ...modes(parts),
    }));
}

async function health(context: RouteContext, { store, gate }: HttpParts): Promise<Response> {
  try {
    gate.requireOpen();
    const databaseVersion = await store.health();
    return context.json({
      status: "healthy",
      database: "connected",
      engine: ENGINE,
      version: VERSION,
      databaseVersion,
    });
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
    return context.json({
      status: "unhealthy",
      database: "disconnected",
      engine: ENGINE,
      version: VERSION,
      error: error.message,
    }, 503);
  }
}

function modes({ modes }: HttpParts): Record<string, boolean> {
  const { maintenance, popMaintenance } = modes();
  return { maintenance_mode: maintenance, pop_maintenance_mode: popMaintenance };
}

function waker({ waker, pops }: HttpParts): Record<string, number> {
  const { counts } = pops;
  return {
    parked: waker.parkedCount,
    first_queries: counts.firstQueries,
    wake_queries: counts.wakeQueries,
    poll_queries: counts.pollQueries,
    replies_at_once: counts.repliesAtOnce,
    replies_by_wake: counts.repliesByWake,
    replies_by_poll: counts.repliesByPoll,
    empty_by_timeout: counts.emptyByTimeout,
  };
}
