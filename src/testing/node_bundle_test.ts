import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundleForNode, runNode } from "./node_bundle.ts";

/** Bundles `source`, gives the bundle to `body`, and leaves nothing behind. */
async function withBundle(source: string, body: (path: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    const entry = join(directory, "entry.ts");
    await Deno.writeTextFile(entry, source);
    const bundle = await bundleForNode(pathToFileURL(entry));
    try {
      await body(bundle.path);
    } finally {
      await bundle.remove();
    }
    await assert.rejects(Deno.stat(bundle.path), Deno.errors.NotFound);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("a program in TypeScript runs under Node, with its arguments and environment", async () => {
  const source = `
    const [first, second]: string[] = process.argv.slice(2);
    console.log(first, second, process.env.GIVEN, "Deno" in globalThis);
    console.error("aside");
    process.exitCode = 3;`;
  await withBundle(source, async (path) => {
    const exit = await runNode(path, {
      args: ["one", "two"],
      env: { GIVEN: "three" },
      signal: AbortSignal.timeout(60_000),
    });
    assert.deepEqual(exit, { code: 3, stdout: "one two three false\n", stderr: "aside\n" });
  });
});

Deno.test("a program that does not end is killed by the signal", async () => {
  await withBundle("setInterval(() => {}, 1000);", async (path) => {
    const { code } = await runNode(path, { signal: AbortSignal.timeout(200) });
    assert.equal(code, null);
  });
});

Deno.test("what cannot be bundled says why", async () => {
  await assert.rejects(
    withBundle(`import "./missing.ts";`, () => Promise.reject(new Error("it was bundled"))),
    /missing\.ts/,
  );
});
