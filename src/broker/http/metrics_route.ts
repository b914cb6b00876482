import type { App, HttpParts } from "./parts.ts";

/** `GET /metrics`: everything that Prometheus is told, in its text format. */
export function addMetricsRoute(app: App, { metrics }: HttpParts): void {
  app.get(
    "/metrics",
    async (context) =>
      context.body(await metrics.text(), 200, { "content-type": metrics.contentType }),
  );
}
