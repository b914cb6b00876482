/**
 * What serving HTTP must do, as the contracts in `src/broker/http_seam.ts` say. It runs under Deno
 * and under Node.
 *
 * @module
 */

import type { ListenHttp } from "../../broker/http_seam.ts";
import { httpCloseCases } from "./http_close_cases.ts";
import { httpReplyCases } from "./http_reply_cases.ts";
import type { DefineTest } from "./within.ts";

/** Defines the tests. */
export function httpSuite(listenHttp: ListenHttp, test: DefineTest): void {
  httpReplyCases(listenHttp, test);
  httpCloseCases(listenHttp, test);
}
