import pino from "pino";
import type { Logger } from "../mesh/runtime.ts";

/** A log on stdout. */
export interface Log {
  /** Where to report to. */
  readonly logger: Logger;
  /** Writes what is still held back. */
  flush(): void;
}

/** Held back at most, in bytes, while nobody reads stdout; what comes beyond is lost. */
const HELD_BYTES_MAX = 1024 * 1024;

/**
 * Opens a log of one JSON object a line. A reader of stdout that has stopped reading never makes the
 * program wait, nor does one that is gone end it.
 */
export function openLog(): Log {
  const destination = pino.destination({ dest: 1, sync: false, maxLength: HELD_BYTES_MAX });
  const log = pino({
    base: null,
    messageKey: "message",
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level) => ({ level }) },
    serializers: { error: pino.stdSerializers.err },
  }, destination);
  return {
    logger: {
      info: (message, fields = {}) => log.info(fields, message),
      warn: (message, fields = {}) => log.warn(fields, message),
      error: (message, fields = {}) => log.error(fields, message),
    },
    flush: () => destination.flushSync(),
  };
}
