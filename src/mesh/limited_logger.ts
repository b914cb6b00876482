import type { Clock, Logger } from "./runtime.ts";

/** So many lines of one message are passed on in one minute. */
const LINES_MAX = 20;

/** The length of that minute, in milliseconds. */
const WINDOW_MS = 60_000;

type Fields = Readonly<Record<string, unknown>>;

interface Window {
  startMs: number;
  lines: number;
  omitted: number;
}

/**
 * A logger for what others can cause as often as they like: of each message it passes on 20 lines a
 * minute. The next line that it passes on says in `omitted` how many it kept back.
 */
export class LimitedLogger implements Logger {
  readonly #logger: Logger;
  readonly #clock: Clock;
  /** By message, of which there are few: values stand in the fields. */
  readonly #windows = new Map<string, Window>();

  /** Passes on to `logger`. */
  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /** Something worth knowing that needs no action. */
  info(message: string, fields: Fields = {}): void {
    this.#pass(message, fields, (fields) => this.#logger.info(message, fields));
  }

  /** Something that an operator may have to act upon. */
  warn(message: string, fields: Fields = {}): void {
    this.#pass(message, fields, (fields) => this.#logger.warn(message, fields));
  }

  /** Something that went wrong in this program. */
  error(message: string, fields: Fields = {}): void {
    this.#pass(message, fields, (fields) => this.#logger.error(message, fields));
  }

  #pass(message: string, fields: Fields, write: (fields: Fields) => void): void {
    const nowMs = this.#clock.now();
    let window = this.#windows.get(message);
    if (window === undefined) {
      window = { startMs: nowMs, lines: 0, omitted: 0 };
      this.#windows.set(message, window);
    }
    if (nowMs - window.startMs >= WINDOW_MS) {
      window.startMs = nowMs;
      window.lines = 0;
    }
    if (window.lines === LINES_MAX) {
      window.omitted++;
      return;
    }
    window.lines++;
    const { omitted } = window;
    window.omitted = 0;
    write(omitted === 0 ? fields : { ...fields, omitted });
  }
}
