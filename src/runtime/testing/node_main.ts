/**
 * The suites of both seams as a program for Node. It prints one line of JSON for each test, and
 * then ends by itself, unless a test has left something open.
 *
 * @module
 */

import { listenHttp } from "../http.ts";
import { nodeRuntime } from "../node.ts";
import { httpSuite } from "./http_suite.ts";
import { meshSuite } from "./mesh_suite.ts";
import { networkSuite } from "./network_suite.ts";

/** What became of one test. */
export interface CaseResult {
  /** The name of the test. */
  readonly name: string;
  /** Why it failed. */
  readonly error?: string;
}

const cases: { name: string; body: () => Promise<void> }[] = [];
networkSuite(nodeRuntime(), (name, body) => cases.push({ name: `Node's network: ${name}`, body }));
meshSuite(nodeRuntime(), (name, body) => cases.push({ name: `Node's network: ${name}`, body }));
httpSuite(listenHttp, (name, body) => cases.push({ name: `HTTP on Node: ${name}`, body }));

for (const { name, body } of cases) {
  let result: CaseResult = { name };
  try {
    await body();
  } catch (error) {
    result = { name, error: error instanceof Error ? error.stack ?? error.message : String(error) };
  }
  console.log(JSON.stringify(result));
}
