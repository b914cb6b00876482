import type { DemoReplica } from "./replicas.ts";
import type { ReplicaStats } from "./replica_client.ts";
import type { Stage } from "./stage.ts";
import { until } from "./wait.ts";

/** How long the mesh may take to form, in milliseconds: more than the longest wait between dials. */
const FORM_MS_MAX = 15_000;

/** Resolves once each replica is connected to all the others and hears from all of them. */
export async function waitUntilMeshed(
  { signal }: Stage,
  replicas: readonly DemoReplica[],
): Promise<void> {
  await until("the mesh forms", async () => {
    const obstacles = await Promise.all(replicas.map(async ({ name, client }) => {
      const others = replicas.filter((other) => other.name !== name).map((other) => other.name);
      return describeGap(name, await client.stats(signal), others);
    }));
    const found = obstacles.filter((obstacle) => obstacle !== undefined);
    return found.length === 0 ? undefined : found.join("; ");
  }, { timeoutMs: FORM_MS_MAX, everyMs: 25, signal });
}

/** What keeps a replica from being meshed with all the others, or undefined. */
export function describeGap(
  name: string,
  stats: ReplicaStats,
  others: readonly string[],
): string | undefined {
  const { peers = [], servers = [], servers_alive, servers_dead } = stats;
  const connected = peers.filter((peer) => peer.connected).length;
  const alive = servers.filter((server) => server.alive).map((server) => server.server_id);
  const isMeshed = peers.length === others.length && connected === others.length &&
    servers_alive === others.length && servers_dead === 0 &&
    others.every((other) => alive.includes(other));
  if (isMeshed) return undefined;
  return `${name} is connected to ${connected} of ${others.length} and hears ` +
    (alive.length === 0 ? "nobody" : alive.sort().join(", "));
}
