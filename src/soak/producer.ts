import { setTimeout as delay } from "node:timers/promises";
import type { Prng } from "../simulation/prng.ts";
import type { SoakClient } from "./client.ts";
import type { Progress } from "./progress.ts";
import type { SoakPlan, World } from "./world.ts";

/** The most messages in one push. */
const PUSH_ITEMS_MAX = 6;

/** The longest pause between two pushes, also while PostgreSQL is away, in milliseconds. */
const PAUSE_MS_MAX = 30;
const AWAY_PAUSE_MS_MAX = 300;

/** The pause after a push that was not answered, in milliseconds. */
const RETRY_MS = 60;

/**
 * Pushes until it is told to stop, one push after the other, and stays with its replica as long as that
 * answers. A push that is not answered is repeated, there or elsewhere, until it is.
 */
export async function produce(
  { plan, progress, replicas, signal }: World,
  { name, prng, client, isStopped }: {
    readonly name: string;
    readonly prng: Prng;
    readonly client: SoakClient;
    readonly isStopped: () => boolean;
  },
): Promise<void> {
  let replica = prng.pick(replicas);
  let count = 0;
  while (!isStopped() && !signal.aborted) {
    const items = Array.from({ length: prng.integer(1, PUSH_ITEMS_MAX) }, () => ({
      partition: prng.pick(plan.partitions),
      transaction: `${name}-${++count}`,
    }));
    while (!await client.push(replica, items)) {
      if (signal.aborted) return;
      if (prng.chance(0.7)) replica = prng.pick(replicas);
      await delay(RETRY_MS);
    }
    await delay(prng.integer(0, progress.isPostgresAway ? AWAY_PAUSE_MS_MAX : PAUSE_MS_MAX));
    while (isTooFarAhead(progress, plan) && !isStopped() && !signal.aborted) await delay(RETRY_MS);
  }
}

/** While PostgreSQL is away nobody gets anything, and pushing goes on all the same. */
function isTooFarAhead(progress: Progress, { backlogMax }: SoakPlan): boolean {
  return !progress.isPostgresAway && progress.backlog > backlogMax;
}
