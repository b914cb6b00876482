import { kill } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import type { EmbeddedPostgres } from "../embedded/embedded_postgres.ts";
import type { Prng } from "../simulation/prng.ts";
import { freezePostgres, type PostgresFault, stopPostgres } from "./postgres_fault.ts";
import type { SoakReplica } from "./replicas.ts";
import type { World } from "./world.ts";

/** Between the end of one kill and the next, and for how long a replica stays dead, in milliseconds. */
const KILL_PAUSE_MS = { min: 300, max: 2500 };
const DEAD_MS = { min: 50, max: 1200 };

/** How often a replica hangs for a while instead, and for how long, in milliseconds. */
const FREEZE_CHANCE = 0.2;
const FROZEN_MS = { min: 100, max: 3500 };

/** Between two flips of a maintenance mode, in milliseconds. */
const FLIP_PAUSE_MS = { min: 200, max: 900 };

/** How long an outage may last until somebody has noticed it, in milliseconds. */
const SEEN_MS_MAX = 60_000;

/** How long a flip may take to be taken by some replica, in milliseconds. */
const FLIP_MS_MAX = 60_000;

/** When what happens, in parts of the whole time. */
const SCHEDULE = { stop: 0.15, freeze: 0.45, flips: 0.72, flipsEnd: 0.9 };

/** What chaos needs beside the world. */
export interface ChaosParts {
  readonly server: EmbeddedPostgres;
  readonly prng: Prng;
  readonly print: (line: string) => void;
}

/** Does harm for as long as the soak pushes. Resolves once all of it is undone, killed replicas aside. */
export async function wreak(world: World, parts: ChaosParts): Promise<void> {
  const beganAt = performance.now();
  const isOver = () => world.signal.aborted || performance.now() - beganAt > world.plan.durationMs;
  await Promise.all([
    killReplicas(world, { ...parts, prng: parts.prng.fork(), isOver }),
    follow(world, parts),
  ]);
}

/** Kills one replica after the other, at least one, and lets some hang. */
async function killReplicas(
  { replicas, progress }: World,
  { prng, isOver }: ChaosParts & { readonly isOver: () => boolean },
): Promise<void> {
  do {
    await delay(prng.integer(KILL_PAUSE_MS.min, KILL_PAUSE_MS.max));
    const { process } = prng.pick(replicas);
    const { pid } = process;
    if (pid !== undefined && prng.chance(FREEZE_CHANCE)) {
      signalProcess(pid, "SIGSTOP");
      progress.freezes++;
      await delay(prng.integer(FROZEN_MS.min, FROZEN_MS.max));
      signalProcess(pid, "SIGCONT");
      continue;
    }
    await process.kill();
    progress.kills++;
    await delay(prng.integer(DEAD_MS.min, DEAD_MS.max));
    process.start();
  } while (!isOver() || progress.kills === 0);
}

/** One that has ended meanwhile is told of elsewhere. */
function signalProcess(pid: number, signal: "SIGSTOP" | "SIGCONT"): void {
  try {
    kill(pid, signal);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ESRCH") throw error;
  }
}

/** The phases, one after the other. */
async function follow(world: World, parts: ChaosParts): Promise<void> {
  const { durationMs } = world.plan;
  const { stop, freeze, flips, flipsEnd } = SCHEDULE;
  await delay(durationMs * stop);
  await takePostgresAway(world, { ...parts, what: "stopped", fault: stopPostgres });
  await delay(Math.max(durationMs * (freeze - stop) - world.plan.outageMs, 0));
  await takePostgresAway(world, { ...parts, what: "frozen", fault: freezePostgres });
  await delay(Math.max(durationMs * (flips - freeze) - world.plan.outageMs, 0));
  await flipModes(world, { ...parts, forMs: durationMs * (flipsEnd - flips) });
}

/** For its time, and until a push was buffered and a pop refused. */
async function takePostgresAway(
  { plan, progress, history, signal }: World,
  { server, print, what, fault }: ChaosParts & {
    readonly what: string;
    readonly fault: PostgresFault;
  },
): Promise<void> {
  if (signal.aborted) return;
  const restore = await fault(server);
  history.noteOutage(true);
  progress.isPostgresAway = true;
  print(`PostgreSQL is ${what}`);
  const { buffered } = progress.pushes;
  const { pop } = progress.refused;
  const isSeen = () => progress.pushes.buffered > buffered && progress.refused.pop > pop;
  const deadline = performance.now() + SEEN_MS_MAX;
  await delay(plan.outageMs);
  while (!isSeen() && performance.now() < deadline) await delay(50);
  if (!isSeen()) history.report(`PostgreSQL was ${what}, and no push was buffered, or no pop 503`);
  print(
    `PostgreSQL comes back; meanwhile ${
      progress.pushes.buffered - buffered
    } messages were buffered ` +
      `and ${progress.refused.pop - pop} pops refused`,
  );
  progress.isPostgresAway = false;
  history.noteOutage(false);
  await restore();
}

/** Both modes go on and off, and end off. */
async function flipModes(
  world: World,
  { prng, print, forMs }: ChaosParts & { readonly forMs: number },
): Promise<void> {
  const { progress, signal } = world;
  print("Maintenance goes on and off");
  const endsAt = performance.now() + forMs;
  const isOn = { maintenance: false, "maintenance/pop": false };
  while (performance.now() < endsAt && !signal.aborted) {
    const mode = prng.pick(["maintenance", "maintenance/pop"] as const);
    isOn[mode] = !isOn[mode];
    await flip(world, { prng, mode, enabled: isOn[mode] });
    progress.flips++;
    await delay(prng.integer(FLIP_PAUSE_MS.min, FLIP_PAUSE_MS.max));
  }
  for (const mode of ["maintenance", "maintenance/pop"] as const) {
    await flip(world, { prng, mode, enabled: false });
  }
  print("Maintenance is over");
}

/** Asks one replica after the other until one has flipped it. */
async function flip(
  { replicas, history, signal }: World,
  { prng, mode, enabled }: {
    readonly prng: Prng;
    readonly mode: string;
    readonly enabled: boolean;
  },
): Promise<void> {
  const deadline = performance.now() + FLIP_MS_MAX;
  while (performance.now() < deadline && !signal.aborted) {
    const replica = prng.pick(replicas);
    const status = await postFlip(replica, mode, enabled);
    if (status === 200) return;
    if (status !== undefined && status !== 503) {
      history.report(`${replica.name} answered a flip with ${status}`);
    }
    await delay(50);
  }
  history.report(`nobody switched ${mode} ${enabled ? "on" : "off"} in time`);
}

async function postFlip(
  { url }: SoakReplica,
  mode: string,
  enabled: boolean,
): Promise<number | undefined> {
  try {
    const response = await fetch(`${url}/api/v1/system/${mode}`, {
      method: "POST",
      body: JSON.stringify({ enabled }),
      signal: AbortSignal.timeout(15_000),
    });
    await response.body?.cancel();
    return response.status;
  } catch {
    return undefined;
  }
}
