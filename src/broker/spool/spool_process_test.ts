import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { within } from "../../runtime/testing/within.ts";
import { bundleForNode } from "../../testing/node_bundle.ts";
import { codeOf } from "./errors.ts";

const PROGRAM = new URL("./testing/spool_process.ts", import.meta.url);

/** A process that works on a spool, and what it has said. */
class SpoolProcess {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #isEnded = false;
  #onLine: () => void = () => {};

  constructor(command: readonly string[], args: readonly string[]) {
    const [program, ...options] = command;
    this.#child = spawn(program!, [...options, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    this.#ended = once(this.#child, "close").then(() => this.#isEnded = true);
    createInterface({ input: this.#child.stdout! }).on("line", (line) => {
      this.lines.push(line);
      this.#onLine();
    });
  }

  /** Resolves as soon as it has said such a line for the `count`th time. */
  async said(pattern: RegExp, count = 1): Promise<void> {
    const isSaid = () => this.lines.filter((line) => pattern.test(line)).length >= count;
    await within(
      new Promise<void>((resolve) => {
        this.#onLine = () => isSaid() && resolve();
        this.#onLine();
      }),
      `the process says ${pattern}`,
    );
  }

  /** What it has named after a word. */
  named(word: string): string[] {
    return this.lines.filter((line) => line.startsWith(`${word} `))
      .map((line) => line.slice(word.length + 1));
  }

  async ended(): Promise<void> {
    await within(this.#ended, "the process ends");
  }

  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this.ended();
  }

  /** Stops it in its tracks, without ending it. */
  freeze(): void {
    this.#signal("SIGSTOP");
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#isEnded) return;
    try {
      // By its id: the child's own kill() takes one that was stopped for one that has ended.
      process.kill(this.#child.pid!, signal);
    } catch (error) {
      // It has ended by itself, and that was not told yet.
      if (codeOf(error) !== "ESRCH") throw error;
    }
  }
}

/** Makes a directory for a spool, and both ways to run the program. */
async function setUp() {
  const directory = await mkdtemp(join(tmpdir(), "queen-spool-"));
  const bundle = await bundleForNode(PROGRAM);
  const running: SpoolProcess[] = [];
  const commands = {
    deno: [process.execPath, "run", "--quiet", "-A", fileURLToPath(PROGRAM)],
    node: ["node", bundle.path],
  };
  return {
    directory,
    start(runtime: "deno" | "node", task: "append" | "drain", path = directory): SpoolProcess {
      const started = new SpoolProcess(commands[runtime], [path, task]);
      running.push(started);
      return started;
    },
    async [Symbol.asyncDispose]() {
      for (const started of running) await started.kill();
      await bundle.remove();
      await rm(directory, { recursive: true });
    },
  };
}

for (const [first, second] of [["deno", "node"], ["node", "deno"]] as const) {
  Deno.test(`a spool that ${first} works on is refused to ${second}, until ${first} is killed`, async () => {
    await using setup = await setUp();
    const owner = setup.start(first, "append");
    await owner.said(/^appended/, 3);
    const refused = setup.start(second, "drain");
    await refused.ended();
    assert.deepEqual(refused.lines, ["in use"]);
    await owner.said(/^appended/, 10);

    owner.freeze();
    const refusedAgain = setup.start(second, "drain");
    await refusedAgain.ended();
    assert.deepEqual(refusedAgain.lines, ["in use"], "one that hangs is not dead");

    await owner.kill();
    const heir = setup.start(second, "drain");
    await heir.ended();
    assert.equal(heir.lines[0], "open");
    const stored = heir.named("stored");
    const appended = owner.named("appended");
    // The last ones may have been synced without a chance to say so.
    assert.deepEqual(stored.slice(0, appended.length), appended);
    assert.equal(new Set(stored).size, stored.length);
    assert.deepEqual(await readdir(setup.directory), [], "nothing is left");
  });
}

Deno.test("of processes that start at once on a spool that a crash left, one gets it", async () => {
  await using setup = await setUp();
  const dead = setup.start("deno", "append");
  await dead.said(/^appended/, 2);
  await dead.kill();
  const rivals = (["deno", "node", "deno", "node"] as const)
    .map((runtime) => setup.start(runtime, "append"));
  for (const rival of rivals) await rival.said(/^(open|in use)$/);
  const winners = rivals.filter((rival) => rival.lines[0] === "open");
  assert.equal(winners.length, 1);
  await winners[0]!.said(/^appended/, 2);
});

Deno.test("a directory whose path is too long for a socket is locked as any other", async () => {
  await using setup = await setUp();
  const path = join(setup.directory, "x".repeat(120));
  const owner = setup.start("node", "append", path);
  await owner.said(/^appended/);
  for (const runtime of ["deno", "node"] as const) {
    const refused = setup.start(runtime, "drain", path);
    await refused.ended();
    assert.deepEqual(refused.lines, ["in use"]);
  }
});
