/**
 * Real replicas under load while they are killed and PostgreSQL goes away, and the check of all that
 * their clients saw.
 *
 * @module
 */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { QUEUE_MODE } from "../broker/waker.ts";
import { Cleanup } from "../cli/demo/cleanup.ts";
import { Guard } from "../cli/guard.ts";
import { startEmbeddedPostgres } from "../embedded/embedded_postgres.ts";
import type { Network } from "../mesh/runtime.ts";
import { Prng } from "../simulation/prng.ts";
import { wreak } from "./chaos.ts";
import { check } from "./check.ts";
import { SoakClient } from "./client.ts";
import { Consumer } from "./consumer.ts";
import { History, type Setting } from "./history.ts";
import { produce } from "./producer.ts";
import { Progress } from "./progress.ts";
import { makeReplicas, type SoakReplica } from "./replicas.ts";
import type { Violation } from "./violation.ts";
import type { SoakPlan, World } from "./world.ts";

/** How long everything may take to start, and to drain in the end, in milliseconds. */
const START_MS_MAX = 60_000;
const DRAIN_MS_MAX = 120_000;

/** When the late group comes, in parts of the whole time. */
const LATE_STARTS = [0.1, 0.3, 0.5, 0.8];

/** How often progress is told, in milliseconds. */
const PROGRESS_MS = 5000;

/** What to soak, and where to tell of it. */
export interface SoakOptions {
  /** For how long messages are pushed, in seconds. */
  readonly seconds: number;
  /**
   * Of the choices that everybody makes; not of the time at which they come. Every fourth soak is
   * without the hot list.
   */
  readonly seed: number;
  /** How many replicas. */
  readonly replicas: number;
  /** Takes each line. */
  readonly print: (line: string) => void;
  readonly network: Network;
  /** Where logs, spools and the history stay; a directory that is removed, where it is left out. */
  readonly directory?: string | undefined;
}

/** What a soak came to. */
export interface SoakResult {
  readonly violations: readonly Violation[];
  readonly progress: Progress;
}

/** Runs one soak and leaves nothing behind, but in a directory that it was given. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const cleanup = new Cleanup();
  try {
    return await run(options, cleanup);
  } finally {
    const errors = await cleanup.run();
    // deno-lint-ignore no-unsafe-finally -- what was left behind counts more than why it all ended
    if (errors.length > 0) throw errors[0];
  }
}

async function run(options: SoakOptions, cleanup: Cleanup): Promise<SoakResult> {
  const { seed, print } = options;
  const plan = planFor(options.seconds);
  const history = new History(() => performance.now());
  const progress = new Progress(plan.consumers.keys(), () => performance.now());
  const { server, replicas, directory } = await build(options, { plan, history, cleanup });
  const stop = new AbortController();
  cleanup.add(() => Promise.resolve(stop.abort()));
  const prng = new Prng(seed);
  const world: World = { plan, prng, history, progress, replicas, signal: stop.signal };
  await configure(world);
  const beganAt = performance.now();
  const ticker = setInterval(() => print(progressLine(progress, beganAt)), PROGRESS_MS);
  cleanup.add(() => Promise.resolve(clearInterval(ticker)));

  const people = startPeople(world);
  await wreak(world, { server, prng: prng.fork(), print });
  await people.stopProducers();
  const pushedMs = performance.now() - beganAt;
  print("Nothing is pushed any more; the rest drains");
  await drain(world);
  await people.stopConsumers();
  clearInterval(ticker);
  await stopReplicas(replicas, history);
  const { size } = new Set(progress.done.values());
  print(progressLine(progress, beganAt) + (size > 1 ? " (some acks were not answered)" : ""));

  const violations = check(history.events, settingOf(plan));
  for (const line of summary(progress, { pushedMs, events: history.events.length })) print(line);
  if (options.directory !== undefined) {
    const lines = history.events.map((event) => JSON.stringify(event));
    await writeFile(join(directory, "history.jsonl"), `${lines.join("\n")}\n`);
  }
  return { violations, progress };
}

function planFor(seconds: number): SoakPlan {
  return {
    durationMs: seconds * 1000,
    producers: 8,
    consumers: new Map([["first", 3], ["second", 2], [QUEUE_MODE, 3]]),
    lateGroup: "late",
    queue: "soak",
    partitions: ["p1", "p2", "p3", "p4", "p5", "p6"],
    leaseMs: 2000,
    retryDelayMs: 150,
    outageMs: Math.min(seconds * 1000 / 6, 10_000),
    backlogMax: 3000,
  };
}

function settingOf(plan: SoakPlan): Setting {
  const groups = [...plan.consumers.keys()].map((group) => [group, "all"] as const);
  return {
    leaseMs: plan.leaseMs,
    retryDelayMs: plan.retryDelayMs,
    toleranceMs: 50,
    groups: new Map([...groups, [plan.lateGroup, "new"]]),
  };
}

async function build(
  options: SoakOptions,
  { plan, history, cleanup }: {
    readonly plan: SoakPlan;
    readonly history: History;
    readonly cleanup: Cleanup;
  },
) {
  const directory = await makeDirectory(options, cleanup);
  const server = await startEmbeddedPostgres();
  cleanup.add(() => server.stop());
  // Where this process is killed, nothing stays that it was not asked to keep.
  const guard = new Guard(options.directory === undefined ? directory : join(directory, "spools"));
  cleanup.add(() => guard.dismiss());
  const replicas = await makeReplicas({
    count: options.replicas,
    directory,
    guard,
    network: options.network,
    onLost: (text) => history.report(text),
    settings: {
      DATABASE_URL: server.url,
      DB_POOL_SIZE: "8",
      QUEEN_HOTLIST: String(options.seed % 4 !== 0),
      // An outage has to be longer than that.
      QUEEN_PG_TIMEOUT_MS: String(Math.min(Math.round(plan.outageMs / 3), 5000)),
    },
  });
  cleanup.add(() => Promise.all(replicas.map(({ process }) => process.kill())));
  for (const { process } of replicas) process.start();
  await Promise.all(replicas.map(waitUntilServing));
  return { server, replicas, directory };
}

async function waitUntilServing(replica: SoakReplica): Promise<void> {
  const { name, process } = replica;
  try {
    await until(`${name} serves`, {
      timeoutMs: START_MS_MAX,
      look: async () => {
        if (process.pid === undefined) throw new Error(`${name} has ended`);
        return (await ask(replica, "/health")) !== undefined;
      },
    });
  } catch (error) {
    const lines = await process.logTail();
    throw new Error(`${(error as Error).message}; the end of its log:\n${lines.join("\n")}`);
  }
}

async function makeDirectory({ directory }: SoakOptions, cleanup: Cleanup): Promise<string> {
  if (directory !== undefined) {
    await mkdir(directory, { recursive: true });
    return directory;
  }
  const own = await mkdtemp(join(tmpdir(), "queen-mesh-soak-"));
  cleanup.add(() => rm(own, { recursive: true, force: true }));
  return own;
}

async function configure({ plan, replicas }: World): Promise<void> {
  const { queue, leaseMs, retryDelayMs } = plan;
  const response = await fetch(`${replicas[0]!.url}/api/v1/configure`, {
    method: "POST",
    body: JSON.stringify({
      queue,
      options: { leaseTime: leaseMs / 1000, retryDelay: retryDelayMs },
    }),
  });
  if (!response.ok) throw new Error(`configure was answered ${response.status}`);
  await response.body?.cancel();
}

/** Starts producers and consumers. The late group comes at some time or other. */
function startPeople(world: World) {
  const { plan, prng } = world;
  const client = new SoakClient(world);
  let isPushing = true;
  let isConsuming = true;
  const producers = Array.from(
    { length: plan.producers },
    (_, i) =>
      produce(world, { name: `m${i}`, prng: prng.fork(), client, isStopped: () => !isPushing }),
  );
  const consume = (group: string, mode: "all" | "new") =>
    new Consumer(world, {
      group,
      mode,
      prng: prng.fork(),
      client,
      isDraining: () => !isPushing,
      isStopped: () => !isConsuming,
    }).run();
  const consumers = [...plan.consumers].flatMap(([group, count]) =>
    Array.from({ length: count }, () => consume(group, "all"))
  );
  const lateMs = plan.durationMs * prng.pick(LATE_STARTS);
  const late = delay(lateMs).then(() => consume(plan.lateGroup, "new"));
  return {
    async stopProducers() {
      isPushing = false;
      await Promise.all(producers);
    },
    async stopConsumers() {
      isConsuming = false;
      await Promise.all([...consumers, late]);
    },
  };
}

/** Resolves once the spools are empty and every group is done with everything, or gets nothing more. */
async function drain({ plan, history, progress, replicas }: World): Promise<void> {
  const deadline = performance.now() + DRAIN_MS_MAX;
  const leftMs = () => deadline - performance.now();
  try {
    for (const replica of replicas) {
      await until(`the spool of ${replica.name} is empty`, {
        timeoutMs: leftMs(),
        look: async () =>
          (await ask(replica, "/api/v1/system/maintenance"))?.["bufferedMessages"] === 0,
      });
    }
    progress.restartIdleness();
    const idleMs = plan.leaseMs + 2000;
    const groups = [...plan.consumers.keys(), plan.lateGroup];
    await until("all groups are done", {
      timeoutMs: leftMs(),
      look: () => Promise.resolve(groups.every((group) => progress.isDrained(group, idleMs))),
    });
  } catch (error) {
    history.report((error as Error).message);
  }
}

async function stopReplicas(replicas: readonly SoakReplica[], history: History): Promise<void> {
  const faults = await Promise.all(replicas.map(({ process }) => process.stop()));
  for (const fault of faults) if (fault !== undefined) history.report(fault);
}

/** The JSON that a replica answers with 200; undefined for anything else. */
async function ask(
  { url }: SoakReplica,
  path: string,
): Promise<Record<string, unknown> | undefined> {
  try {
    const response = await fetch(url + path, { signal: AbortSignal.timeout(5000) });
    const body = await response.json();
    return response.ok ? body : undefined;
  } catch {
    return undefined;
  }
}

async function until(
  what: string,
  { timeoutMs, look }: {
    readonly timeoutMs: number;
    readonly look: () => Promise<boolean>;
  },
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!await look()) {
    if (performance.now() > deadline) throw new Error(`${what}: not in time`);
    await delay(100);
  }
}

function progressLine(progress: Progress, beganAt: number): string {
  const seconds = Math.round((performance.now() - beganAt) / 1000);
  const done = [...progress.done].map(([group, count]) => `${group} ${count}`).join(", ");
  return `${seconds} s: ${progress.accepted} accepted; done: ${done}; ${progress.kills} kills`;
}

function summary(
  { accepted, pushes, deliveries, redeliveries, dead, lost, refused, kills, freezes, flips }:
    Progress,
  { pushedMs, events }: { readonly pushedMs: number; readonly events: number },
): string[] {
  const counts = (of: Record<string, number>) =>
    Object.entries(of).map(([name, count]) => `${count} ${name}`).join(", ");
  return [
    `${accepted} messages accepted, ${Math.round(accepted / pushedMs * 1000)} messages/s ` +
    `(answers: ${counts(pushes)})`,
    `${deliveries} deliveries, ${redeliveries} of them again; ${dead} dead letters`,
    `${kills} kills, ${freezes} replicas frozen for a while, ${flips} flips of a maintenance mode`,
    `${events} events checked; calls without an answer: ${counts(lost)}; answered 503: ${
      counts(refused)
    }`,
  ];
}
