import process from "node:process";
import type { Logger } from "../../src/mesh/runtime.ts";

const log = (level: string) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
  process.stderr.write(`${level} ${message}${fields ? ` ${JSON.stringify(fields)}` : ""}\n`);

/** Writes lines to stderr. */
export const logger: Logger = { info: log("info"), warn: log("warn"), error: log("error") };
