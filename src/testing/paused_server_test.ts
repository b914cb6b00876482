import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import process from "node:process";
import { pauseServer } from "./paused_server.ts";

/** The letter by which the kernel names the state of a process; undefined where it is gone. */
async function stateOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  return stat?.slice(stat.lastIndexOf(")") + 2)[0];
}

Deno.test({
  name: "a session that ends while the server is paused keeps no other from going on",
  ignore: process.platform !== "linux",
  async fn() {
    const script = "sleep 60 & echo $!; sleep 60 & echo $!; wait";
    const server = spawn("sh", ["-c", script], { stdio: ["ignore", "pipe", "ignore"] });
    let output = "";
    server.stdout.setEncoding("utf8").on("data", (text: string) => output += text);
    while (output.split("\n").length < 3) await once(server.stdout, "data");
    const [first, second] = output.split("\n").map(Number) as [number, number];
    const ended = once(server, "close");
    try {
      const paused = await pauseServer(server.pid!);
      assert.equal(await stateOf(second), "T");
      process.kill(first, "SIGKILL");
      paused.resume();
      while (await stateOf(second) === "T");
      assert.notEqual(await stateOf(second), undefined);
    } finally {
      process.kill(second, "SIGKILL");
      process.kill(server.pid!, "SIGKILL");
      await ended;
    }
  },
});
