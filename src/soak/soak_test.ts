import assert from "node:assert/strict";
import { denoRuntime } from "../runtime/deno.ts";
import { soak } from "./soak.ts";

Deno.test("three replicas that are killed, and a PostgreSQL that goes away, keep every rule", async () => {
  const lines: string[] = [];
  const { violations, progress } = await soak({
    seconds: 8,
    seed: 1,
    replicas: 3,
    network: denoRuntime().network,
    print: (line) => lines.push(line),
  });
  assert.deepEqual(violations, [], lines.join("\n"));
  const { kills, pushes: { queued, buffered } } = progress;
  for (const [what, count] of Object.entries({ kills, queued, buffered })) {
    assert(count > 0, `no ${what}`);
  }
});
