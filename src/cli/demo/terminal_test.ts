import assert from "node:assert/strict";
import { Terminal } from "./terminal.ts";

interface BenchOptions {
  readonly isTTY?: boolean;
  readonly env?: Record<string, string>;
}

function makeBench({ isTTY = false, env = {} }: BenchOptions = {}) {
  const written: string[] = [];
  let now = 0;
  const terminal = new Terminal({
    output: { isTTY, write: (text) => written.push(text) },
    env,
    now: () => now,
  });
  return {
    terminal,
    text: () => written.join(""),
    pass: (ms: number) => now += ms,
  };
}

async function runSteps({ terminal, pass }: ReturnType<typeof makeBench>): Promise<void> {
  terminal.heading("A headline");
  const count = await terminal.step("counting", (progress) => {
    progress("1 of 2");
    pass(1500);
    return Promise.resolve(2);
  }, (count) => `counted to ${count}`);
  assert.equal(count, 2);
  const failing = terminal.step("failing", () => Promise.reject(new Error("no")), () => "done");
  await assert.rejects(failing, /^Error: no$/);
}

Deno.test("without a terminal only whole lines appear, without control sequences", async () => {
  const bench = makeBench();
  await runSteps(bench);
  const lines = bench.text().split("\n");
  assert.deepEqual(lines.map((line) => line.replace(/ {3,}/, " ... ")), [
    "",
    "A headline",
    "  ✓ counted to 2 ... 1.5 s",
    "  ✗ failing",
    "",
  ]);
});

Deno.test("on a terminal a step is rewritten as it goes, in colours", async () => {
  const bench = makeBench({ isTTY: true });
  await runSteps(bench);
  assert.match(bench.text(), /1 of 2/);
  assert.ok(bench.text().includes("\r\x1b[2K  \x1b[32m✓\x1b[0m counted to 2"));
  assert.ok(bench.text().includes("\x1b[31m✗"));
});

Deno.test("NO_COLOR takes the colours away and leaves the progress", async () => {
  const bench = makeBench({ isTTY: true, env: { NO_COLOR: "1" } });
  await runSteps(bench);
  assert.match(bench.text(), /1 of 2/);
  assert.doesNotMatch(bench.text(), /\[\d+m/);
});

Deno.test("an empty NO_COLOR changes nothing", async () => {
  const bench = makeBench({ isTTY: true, env: { NO_COLOR: "" } });
  await runSteps(bench);
  assert.ok(bench.text().includes("\x1b[32m"));
});

Deno.test("a dumb terminal is sent no control sequences", async () => {
  const bench = makeBench({ isTTY: true, env: { TERM: "dumb" } });
  await runSteps(bench);
  assert.ok(!bench.text().includes("\x1b") && !bench.text().includes("\r"));
});
