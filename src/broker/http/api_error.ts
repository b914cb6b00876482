import type { ContentfulStatusCode } from "hono/utils/http-status";

/** A request that is refused. Its message is what the client is told. */
export class ApiError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "ApiError";
  /** The status of the reply. */
  readonly status: ContentfulStatusCode;

  /** Refuses with `status`. */
  constructor(status: ContentfulStatusCode, message: string) {
    super(message);
    this.status = status;
  }
}
