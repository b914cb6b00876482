import assert from "node:assert/strict";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleForNode } from "./testing/node_bundle.ts";

const ROOT = new URL("../", import.meta.url);

/** The code block that a `<!-- test: NAME -->` announces. */
function example(readme: string, name: string): string {
  const found = new RegExp(`<!-- test: ${name} -->\\n+\`\`\`[^\\n]*\\n([^]*?)\`\`\``).exec(readme);
  assert(found !== null, `the README has no example that is marked as ${name}`);
  return found[1]!;
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Resolves once `line` satisfies a line of the process's output; rejects where it ends before. */
async function waitForLine(process: Deno.ChildProcess, holds: (line: string) => boolean) {
  let rest = "";
  for await (const text of process.stdout.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    if (lines.some(holds)) return;
  }
  throw new Error(`the process ended and had said only: ${rest}`);
}

Deno.test("the README's examples mesh, one under Deno and one under Node, with a secret", async () => {
  const readme = await Deno.readTextFile(new URL("README.md", ROOT));
  const directory = await Deno.makeTempDir({ prefix: "queen-mesh-readme-" });
  const [denoPort, nodePort] = [await freePort(), await freePort()];
  const config = fileURLToPath(new URL("deno.json", ROOT));
  const write = async (name: string) => {
    const path = join(directory, `${name}.ts`);
    await Deno.writeTextFile(path, example(readme, name));
    return path;
  };
  const bundle = await bundleForNode(pathToFileURL(await write("node")), { config });
  const signal = AbortSignal.timeout(60_000);
  const start = (command: string, args: string[], env: Record<string, string>) =>
    new Deno.Command(command, {
      args,
      env: { QUEEN_SYNC_SECRET: "s3cr3t", ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
      signal,
    }).spawn();
  const inDeno = start(Deno.execPath(), ["run", "-A", "--config", config, await write("deno")], {
    QUEEN_SERVER_ID: "in-deno",
    QUEEN_MESH_PORT: `${denoPort}`,
    QUEEN_MESH_PEERS: `127.0.0.1:${nodePort}`,
  });
  const inNode = start("node", [bundle.path], {
    QUEEN_SERVER_ID: "in-node",
    QUEEN_MESH_PORT: `${nodePort}`,
    QUEEN_MESH_PEERS: `localhost:${denoPort}`,
  });
  try {
    const says = (id: string) => (line: string) => line.startsWith(`${id} says {"type":"message_`);
    await Promise.all([
      waitForLine(inDeno, says("in-node")),
      waitForLine(inNode, says("in-deno")),
    ]);
  } finally {
    for (const process of [inDeno, inNode]) {
      process.kill("SIGKILL");
      await process.status;
    }
    await bundle.remove();
    await Deno.remove(directory, { recursive: true });
  }
});
