import type { Runtime } from "../mesh/runtime.ts";

/** The runtime that this program runs on: Deno's own, or else Node's. */
export async function currentRuntime(): Promise<Runtime> {
  if ("Deno" in globalThis) return (await import("../runtime/deno.ts")).denoRuntime();
  return (await import("../runtime/node.ts")).nodeRuntime();
}
