/**
 * What every network must do, as the contracts in `src/mesh/runtime.ts` say. It runs against each
 * adapter, under Deno and under Node.
 *
 * @module
 */

import type { Runtime } from "../../mesh/runtime.ts";
import { closeCases } from "./close_cases.ts";
import { connectCases } from "./connect_cases.ts";
import { listenCases } from "./listen_cases.ts";
import { streamCases } from "./stream_cases.ts";
import type { DefineTest } from "./within.ts";

/** Defines the tests of a runtime's network. */
export function networkSuite(runtime: Runtime, test: DefineTest): void {
  streamCases(runtime, test);
  connectCases(runtime, test);
  listenCases(runtime, test);
  closeCases(runtime, test);
}
