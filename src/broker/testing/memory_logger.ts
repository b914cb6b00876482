import type { Logger } from "../../mesh/runtime.ts";

/** One line of a log. */
export interface LogEntry {
  /** How bad it is. */
  readonly level: "info" | "warn" | "error";
  /** What happened. */
  readonly message: string;
  /** The values that belong to it. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A log that is kept, for tests. */
export class MemoryLogger implements Logger {
  /** What was logged, in order. */
  readonly entries: LogEntry[] = [];

  info(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.entries.push({ level: "info", message, fields });
  }

  warn(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.entries.push({ level: "warn", message, fields });
  }

  error(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.entries.push({ level: "error", message, fields });
  }
}
