import { DemoFailure } from "./failure.ts";
import { formatMs } from "./format.ts";
import { waitUntilMeshed } from "./forming.ts";
import { type DemoReplica, waitUntilServing } from "./replicas.ts";
import { findFaults, refuseFaults } from "./series.ts";
import type { Stage } from "./stage.ts";
import { startTraffic, type Traffic } from "./traffic.ts";
import { until } from "./wait.ts";
import { DELAY_MS_MAX, expectWakes, playSeries } from "./waking.ts";

/** How long a death may go unnoticed, in milliseconds. */
const NOTICE_MS_MAX = 15_000;

/** How many rounds go each way through the replica that is back. */
const ROUNDS_AFTER = 5;

/** The one that is killed, and the two that go on. */
interface Cast {
  readonly producer: DemoReplica;
  readonly consumer: DemoReplica;
  readonly victim: DemoReplica;
}

/** Kills the last of three replicas while pushes go on to the first, and brings it back. */
export async function showOutage(
  stage: Stage,
  [producer, consumer, victim]: readonly [DemoReplica, DemoReplica, DemoReplica],
): Promise<void> {
  const cast = { producer, consumer, victim };
  const traffic = startTraffic({
    label: `while ${victim.name} was away`,
    consumer,
    producer,
    queue: "demo-outage",
    delayMsMax: DELAY_MS_MAX,
    signal: stage.signal,
    onFailure: stage.fail,
  });
  try {
    const countAtDeath = await showDeath(stage, { cast, traffic });
    const countAtReturn = await showReturn(stage, { cast, traffic });
    await reportTraffic(stage, { cast, traffic, count: countAtReturn - countAtDeath });
  } finally {
    await traffic.stop();
  }
  await showWakesAfter(stage, cast);
}

interface Scene {
  readonly cast: Cast;
  readonly traffic: Traffic;
}

/** Resolves to how many pushes had been answered before. */
async function showDeath({ terminal, signal }: Stage, { cast, traffic }: Scene): Promise<number> {
  const { victim, producer, consumer } = cast;
  const timing = { timeoutMs: NOTICE_MS_MAX, everyMs: 10, signal };
  const { count } = await terminal.step(
    `${victim.name} is killed with SIGKILL`,
    async () => {
      const hasBegun = () => Promise.resolve(traffic.count > 0 ? undefined : "none yet");
      await until("a push is answered", hasBegun, timing);
      const since = performance.now();
      await victim.process.kill();
      const { count } = traffic;
      await until(`${victim.name} is seen dead`, async () => {
        const views = [producer, consumer].map((witness) =>
          describeView(witness, { victim, signal })
        );
        return (await Promise.all(views)).find((view) => view !== undefined);
      }, timing);
      return { count, ms: performance.now() - since };
    },
    ({ ms }) =>
      `${victim.name} is killed with SIGKILL; ${producer.name} and ${consumer.name} see it dead ` +
      `after ${formatMs(ms)}`,
  );
  return count;
}

interface View {
  readonly victim: DemoReplica;
  readonly signal: AbortSignal;
}

/** Resolves to undefined where `witness` sees `victim` dead, and nobody else. */
async function describeView(
  { name, client }: DemoReplica,
  { victim, signal }: View,
): Promise<string | undefined> {
  const { servers = [], servers_dead } = await client.stats(signal);
  const isSeenDead = servers.some((server) => server.server_id === victim.name && !server.alive);
  return isSeenDead && servers_dead === 1 ? undefined : `${name} reports ${servers_dead} dead`;
}

/** Resolves to how many pushes had been answered until the victim served again. */
async function showReturn(stage: Stage, { cast, traffic }: Scene): Promise<number> {
  const { victim, producer, consumer } = cast;
  return await stage.terminal.step(`${victim.name} returns`, async () => {
    victim.process.start();
    await waitUntilServing(stage, victim);
    const { count } = traffic;
    await waitUntilMeshed(stage, [producer, consumer, victim]);
    return count;
  }, () => `${victim.name} is back: seen alive by both, and connected to and from both`);
}

interface Report extends Scene {
  /** How many pushes were answered while the victim was away. */
  readonly count: number;
}

async function reportTraffic(stage: Stage, { cast, traffic, count }: Report): Promise<void> {
  const { producer, consumer, victim } = cast;
  await stage.terminal.step("pushes meanwhile", async () => {
    const series = await traffic.stop();
    if (series === undefined) throw stage.signal.reason;
    if (count < 1) throw new DemoFailure(`no push was answered while ${victim.name} was away`);
    refuseFaults(findFaults(series, expectWakes(series.rounds.length)));
    return Math.max(...series.rounds.map(({ pushMs }) => pushMs));
  }, (slowestMs) =>
    `meanwhile ${count} pushes to ${producer.name} were answered, all within ` +
    `${formatMs(slowestMs)}, and woke ${consumer.name}`);
}

async function showWakesAfter({ terminal, signal }: Stage, cast: Cast): Promise<void> {
  const { victim, producer } = cast;
  await terminal.step(
    `wakes to and from ${victim.name}`,
    async () => {
      for (const [from, to] of [[producer, victim], [victim, producer]] as const) {
        const series = await playSeries({
          label: `from ${from.name} to ${to.name}`,
          producer: from,
          consumer: to,
          queue: "demo-return",
          count: ROUNDS_AFTER,
          delayMsMax: DELAY_MS_MAX,
          signal,
        });
        refuseFaults(findFaults(series, expectWakes(ROUNDS_AFTER)));
      }
    },
    () =>
      `${producer.name} wakes pops on ${victim.name} again, and ${victim.name} on ${producer.name}, ` +
      `${ROUNDS_AFTER} each`,
  );
}
