import assert from "node:assert/strict";
import { bundleForNode, runNode } from "../testing/node_bundle.ts";
import { nodeRuntime } from "./node.ts";
import { meshSuite } from "./testing/mesh_suite.ts";
import { networkSuite } from "./testing/network_suite.ts";
import type { CaseResult } from "./testing/node_main.ts";

networkSuite(nodeRuntime(), (name, body) => Deno.test(`Node's network on Deno: ${name}`, body));
meshSuite(nodeRuntime(), (name, body) => Deno.test(`Node's network on Deno: ${name}`, body));

Deno.test("both seams hold under Node, and nothing keeps the process alive", async (t) => {
  const bundle = await bundleForNode(new URL("./testing/node_main.ts", import.meta.url));
  try {
    const { code, stdout, stderr } = await runNode(bundle.path, {
      signal: AbortSignal.timeout(120_000),
    });
    const results = stdout.trim().split("\n").map((line) => JSON.parse(line) as CaseResult);
    for (const { name, error } of results) {
      await t.step(name, () => {
        if (error !== undefined) throw new Error(error);
      });
    }
    assert.ok(results.length > 0, "no test ran");
    assert.equal(code, 0, `the process did not end by itself after its tests: ${stderr}`);
    assert.equal(stderr, "");
  } finally {
    await bundle.remove();
  }
});
