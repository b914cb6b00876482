import { Hono } from "hono";
import type { HttpHandler } from "../http_seam.ts";
import { SealedPayloadError } from "../payloads.ts";
import { SpoolUnavailableError } from "../spool/errors.ts";
import { StoreUnavailableError } from "../store/store.ts";
import { addAckRoutes } from "./ack_routes.ts";
import { ApiError } from "./api_error.ts";
import { addConfigureRoute } from "./configure_route.ts";
import { addLeaseRoutes } from "./lease_routes.ts";
import { addNotifyRoute } from "./notify_route.ts";
import { addObserveRoutes } from "./observe_routes.ts";
import { addDeleteRoute } from "./delete_route.ts";
import { addDlqRoute } from "./dlq_route.ts";
import { addMaintenanceRoutes } from "./maintenance_routes.ts";
import { addMetricsRoute } from "./metrics_route.ts";
import type { App, HttpParts, RouteContext, RouteEnv } from "./parts.ts";
import { addPopRoutes } from "./pop_routes.ts";
import { addPushRoute } from "./push_route.ts";
import { addTransactionRoute } from "./transaction_route.ts";

/** What passes, or what an operator has to see to; it may well go through later. */
const UNAVAILABLE = [StoreUnavailableError, SpoolUnavailableError, SealedPayloadError];

/** The HTTP API. */
export function createHandler(parts: HttpParts): HttpHandler {
  const app = createApp(parts);
  return async (request, delivery) => {
    // A client that left before its reply is no error. The routes that have to know look by themselves.
    delivery.completed.catch(() => {});
    return await app.fetch(request, { delivery, tenancy: parts.tenancy });
  };
}

/** Puts the routes of the HTTP API together. Every refusal is `{"error": "..."}`. */
export function createApp(parts: HttpParts): App {
  const app = new Hono<RouteEnv>();
  app.use(async (context, next) => {
    await next();
    parts.metrics.countResponse(context.req.path, context.res.status);
  });
  app.use(async (context, next) => {
    checkRequest(context.req.raw);
    await next();
  });
  addObserveRoutes(app, parts);
  addMetricsRoute(app, parts);
  addMaintenanceRoutes(app, parts);
  addConfigureRoute(app, parts);
  addPushRoute(app, parts);
  addPopRoutes(app, parts);
  addLeaseRoutes(app, parts);
  addAckRoutes(app, parts);
  addTransactionRoute(app, parts);
  addDlqRoute(app, parts);
  addDeleteRoute(app, parts);
  addNotifyRoute(app, parts);
  app.notFound((context) => {
    const { method, path } = context.req;
    return context.json({ error: `no such route: ${method} ${path}` }, 404);
  });
  app.onError((error, context) => replyToError(error, context, parts));
  return app;
}

/** @throws {ApiError} where the request cannot be routed safely. */
function checkRequest(request: Request): void {
  const { pathname } = new URL(request.url);
  // The router would run the GET route for it, and a pop takes messages.
  if (request.method === "HEAD" && pathname.startsWith("/api/v1/pop")) {
    throw new ApiError(405, "HEAD is not supported here; use GET");
  }
  try {
    decodeURIComponent(pathname);
  } catch {
    throw new ApiError(400, "path: must be percent-encoded UTF-8");
  }
}

function replyToError(error: Error, context: RouteContext, { logger }: HttpParts): Response {
  if (error instanceof ApiError) return context.json({ error: error.message }, error.status);
  if (UNAVAILABLE.some((type) => error instanceof type)) {
    return context.json({ error: error.message }, 503);
  }
  const { method, path } = context.req;
  logger.error("A request failed", { method, path, error });
  return context.json({ error: "internal error" }, 500);
}
