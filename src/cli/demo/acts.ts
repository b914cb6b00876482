import { POP_WAIT_DEFAULTS } from "../../broker/backoff.ts";
import { formatMs } from "./format.ts";
import { waitUntilMeshed } from "./forming.ts";
import { showOutage } from "./outage.ts";
import { type DemoReplica, startReplicas } from "./replicas.ts";
import { findFaults, refuseFaults, seriesTable } from "./series.ts";
import type { Stage } from "./stage.ts";
import { expectPolls, expectWakes, playWithMesh, playWithoutMesh } from "./waking.ts";

/** Replicas A, B and C. */
export type Trio = readonly [DemoReplica, DemoReplica, DemoReplica];

/** How often the rounds are played. */
export interface RoundCounts {
  /** With the mesh. */
  readonly rounds: number;
  /** Without it. */
  readonly roundsWithout: number;
}

/** How often parked pops poll where the mesh is shown: too seldom to explain a quick reply. */
const POLL_MS = 5000;

/** How often replicas tell each other that they live, in milliseconds. */
const HEARTBEAT_MS = 250;

/** After how much silence they hold each other dead, in milliseconds. */
const DEAD_THRESHOLD_MS = 2000;

/** Shows everything, one act after the other, and resolves to the replicas, which still run. */
export async function playActs(stage: Stage, counts: RoundCounts): Promise<Trio> {
  const replicas = await playForming(stage);
  await playWaking(stage, { replicas, counts });
  await playOutage(stage, replicas);
  return replicas;
}

async function playForming(stage: Stage): Promise<Trio> {
  const { terminal } = stage;
  terminal.heading("1  The mesh forms");
  const replicas = await terminal.step(
    "replicas A, B and C start",
    () =>
      startReplicas(stage, {
        names: ["A", "B", "C"],
        settings: {
          QUEEN_SYNC_HEARTBEAT_MS: String(HEARTBEAT_MS),
          QUEEN_SYNC_DEAD_THRESHOLD_MS: String(DEAD_THRESHOLD_MS),
          POP_WAIT_INITIAL_INTERVAL_MS: String(POLL_MS),
          POP_WAIT_MAX_INTERVAL_MS: String(POLL_MS),
        },
      }),
    (replicas) => {
      const [a, b, c] = replicas.map(({ client }) => new URL(client.url).port);
      return `replicas A, B and C serve on the ports ${a}, ${b} and ${c}`;
    },
  );
  await terminal.step(
    "each connects to the two others",
    () => waitUntilMeshed(stage, replicas),
    () => "each is connected to the two others, with a secret, and sees them alive",
  );
  return replicas as readonly DemoReplica[] as Trio;
}

interface Waking {
  readonly replicas: Trio;
  readonly counts: RoundCounts;
}

async function playWaking(stage: Stage, { replicas, counts }: Waking): Promise<void> {
  const { terminal } = stage;
  const { rounds, roundsWithout } = counts;
  const { initialMs, maxMs } = POP_WAIT_DEFAULTS;
  const [producer, consumer] = replicas;
  terminal.heading("2  A pop waits on B, a push goes to A");
  const poll = formatMs(POLL_MS);
  terminal.note(
    `With the mesh, pops poll every ${poll} here, so that only a wake can explain a quick reply.`,
  );
  terminal.note(
    `Without it, they poll after ${formatMs(initialMs)}, then less often, up to every ` +
      `${formatMs(maxMs)}. The counts are B's own.`,
  );
  const withMesh = await playWithMesh(stage, { producer, consumer, count: rounds });
  const without = await playWithoutMesh(stage, roundsWithout);
  terminal.line();
  for (const line of seriesTable([withMesh, without])) terminal.line(line);
  refuseFaults([
    ...findFaults(withMesh, expectWakes(rounds)),
    ...findFaults(without, expectPolls(roundsWithout)),
  ]);
}

async function playOutage(stage: Stage, replicas: Trio): Promise<void> {
  stage.terminal.heading("3  C dies and comes back");
  await showOutage(stage, replicas);
}
