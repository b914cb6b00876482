import assert from "node:assert/strict";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CommandProcess } from "./testing/command.ts";

/** The demo as a process of its own, with a directory of its own for temporary files. */
class DemoProcess implements AsyncDisposable {
  readonly command: CommandProcess;
  readonly #directory: string;

  private constructor(directory: string, command: CommandProcess) {
    this.#directory = directory;
    this.command = command;
  }

  static async start(args: readonly string[] = [], settings: Record<string, string> = {}) {
    const directory = await mkdtemp(join(tmpdir(), "queen-mesh-test-"));
    // As `/tmp` is: as root, PostgreSQL runs under another account.
    await chmod(directory, 0o1777);
    const command = new CommandProcess(["demo", ...args], { TMPDIR: directory, ...settings });
    return new DemoProcess(directory, command);
  }

  /** What it has not removed. */
  async leftovers(): Promise<string[]> {
    return await readdir(this.#directory);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.command[Symbol.asyncDispose]();
    // Where it was killed, its guards are still at work.
    await until("its files are gone", async () => (await this.leftovers()).length === 0);
    await rm(this.#directory, { recursive: true });
  }
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = AbortSignal.timeout(20_000);
  while (!await holds()) {
    if (deadline.aborted) assert.fail(`not within 20 s: ${what}`);
    await delay(20);
  }
}

async function serves(url: string): Promise<boolean> {
  try {
    await (await fetch(`${url}/status`)).body?.cancel();
    return true;
  } catch {
    return false;
  }
}

/** Runs what a printed curl line says. */
async function curl(line: string): Promise<unknown> {
  const [, body, url] = line.match(/^curl (?:-d '(.*)' )?'?(http:[^\s']+)'?$/)!;
  const response = await fetch(url!, body === undefined ? {} : { method: "POST", body });
  return await response.json();
}

Deno.test("the demo shows what it claims, can be kept, and leaves nothing behind", async () => {
  await using demo = await DemoProcess.start(["--keep", "--rounds", "5", "--rounds-without", "2"]);
  const { input: text } = await demo.command.said(/Parked pops poll every[^\n]*\n/);
  assert.match(text!, /^ {2}with the mesh +5 +5 +0 .*\n {2}without the mesh +2 +0 +2 /m);
  assert.match(text!, /✓ C is killed with SIGKILL; A and B see it dead/);
  assert.match(text!, /✓ A wakes pops on C again/);
  const urls = [...text!.matchAll(/^ {2}[ABC] {3}(http:\S+) /gm)].map(([, url]) => url!);
  assert.equal(urls.length, 3);
  const [pop, push] = ["park a pop", "push on"].map((what) =>
    text!.match(new RegExp(`^ {2}${what}.*\\n {2}(curl .*)$`, "m"))![1]!
  );
  const [reply] = await Promise.all([curl(pop!), curl(push!)]);
  assert.deepEqual((reply as { messages: { data: unknown }[] }).messages[0]?.data, { n: 1 });
  demo.command.kill("SIGINT");
  const { code, stdout } = await demo.command.ended;
  assert.equal(code, 0, stdout);
  assert.deepEqual(await demo.leftovers(), []);
  for (const url of urls) assert.equal(await serves(url), false);
});

Deno.test("a demo that is interrupted says so and leaves nothing behind", async () => {
  await using demo = await DemoProcess.start();
  const [, ...ports] = await demo.command.said(/ports (\d+), (\d+) and (\d+)/);
  demo.command.kill("SIGTERM");
  const { code, stdout } = await demo.command.ended;
  assert.equal(code, 143, stdout);
  assert.match(stdout, /Stopped early, interrupted by SIGTERM/);
  assert.deepEqual(await demo.leftovers(), []);
  for (const port of ports) assert.equal(await serves(`http://127.0.0.1:${port}`), false);
});

Deno.test("a demo that is killed takes its replicas and its files with it", async () => {
  await using demo = await DemoProcess.start();
  const [, ...ports] = await demo.command.said(/ports (\d+), (\d+) and (\d+)/);
  for (const port of ports) assert.equal(await serves(`http://127.0.0.1:${port}`), true);
  demo.command.kill("SIGKILL");
  await demo.command.ended;
  for (const port of ports) {
    await until("it is gone", async () => !await serves(`http://127.0.0.1:${port}`));
  }
  await until("its files are gone", async () => (await demo.leftovers()).length === 0);
});

Deno.test("a demo without a database fails and says why", async () => {
  await using demo = await DemoProcess.start([], { DATABASE_URL: "postgres://u:p@127.0.0.1:1/d" });
  const { code, stdout } = await demo.command.ended;
  assert.equal(code, 1);
  assert.match(stdout, /there is no database for the demo: .*127\.0\.0\.1:1/);
  assert.deepEqual(await demo.leftovers(), []);
});

Deno.test("the demo refuses counts that are no counts", async () => {
  for (const count of ["0", "-1", "1.5", "many"]) {
    await using demo = await DemoProcess.start([`--rounds=${count}`]);
    const { code, stderr, stdout } = await demo.command.ended;
    assert.equal(code, 1);
    assert.match(stderr, /whole number from 1/);
    assert.equal(stdout, "");
  }
});
