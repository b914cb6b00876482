import { HarnessError, shown } from "./failure.ts";
import type { Recorder } from "./transcript.ts";

/** What a node answered. */
export interface HttpReply {
  /** The status code. */
  readonly status: number;
  /** The body as text; empty where there is none. */
  readonly text: string;
  /** The body read as JSON, or undefined where it is none. */
  readonly json: unknown;
}

/** A request to a node. */
export interface HttpRequest {
  /** GET where it is left out. */
  readonly method?: string;
  /** A value that is sent as JSON. */
  readonly body?: unknown;
  /** More headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Gives up after this time, in milliseconds. */
  readonly timeoutMs: number;
  /** Gives up at once. */
  readonly signal: AbortSignal;
  /** Takes the exchange; nothing is written down where it is left out. */
  readonly record?: Recorder | undefined;
  /** What the transcript calls the node. */
  readonly label: string;
}

/**
 * Makes one request.
 *
 * @throws {HarnessError} If there is no answer: refused, broken off, or not in time.
 */
export async function request(url: string, options: HttpRequest): Promise<HttpReply> {
  const { method = "GET", body, headers, timeoutMs, signal, record, label } = options;
  const what = `${label} ${method} ${new URL(url).pathname}${new URL(url).search}`;
  const sent = body === undefined ? undefined : JSON.stringify(body);
  record?.(sent === undefined ? what : `${what} ${brief(sent)}`);
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method,
      headers: {
        ...(sent === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent }),
      signal: AbortSignal.any([deadline, signal]),
    });
    const text = await response.text();
    record?.(`${label} ${response.status} ${brief(text)}`.trimEnd());
    return { status: response.status, text, json: parsed(text) };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const why = deadline.aborted ? `no answer within ${timeoutMs} ms` : reason(error);
    record?.(`${label} ${why}`);
    throw new HarnessError(`${what}: ${why}`);
  }
}

function reason(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message} (${cause.message})` : message;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function brief(text: string): string {
  return text.length <= 600 ? text : shown(`${text.slice(0, 600)}... (${text.length} chars)`);
}
