import { Counter, Gauge, type Registry } from "prom-client";
import type { EnabledStats, MeshStats } from "../../mesh/stats.ts";
import type { HotListStats } from "../hot_list/hot_list.ts";
import type { Modes } from "../modes.ts";
import type { PopCounts } from "../pop_service.ts";
import type { PoolStats } from "../store/store.ts";
import { VERSION } from "../version.ts";
import { PREFIX } from "./prefix.ts";

/** What of a spool is told. */
export interface SpoolDepth {
  /** Records that wait to be drained. */
  readonly pendingCount: number;
  /** How long the oldest of them has waited, in milliseconds; undefined if none. */
  readonly oldestAgeMs: number | undefined;
}

/** Where the figures are that others keep. */
export interface MetricSources {
  /** How the mesh stands. */
  readonly meshStats: () => MeshStats;
  /** The modes that the replica is in. */
  readonly modes: () => Modes;
  /** How many pops are parked. */
  readonly parkedCount: () => number;
  /** How many pops there were, of each kind. */
  readonly popCounts: () => PopCounts;
  /** How the hot list stands, with the dirty hints that found no room. */
  readonly hotList: () => HotListStats & { readonly hintsDropped: number };
  /** How the connections to PostgreSQL stand; all zero where it gives undefined. */
  readonly pool?: () => PoolStats | undefined;
  /** How the spool stands; all zero where it gives undefined. */
  readonly spool?: () => SpoolDepth | undefined;
}

/** The value of one series. */
type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

/** Where a metric's values come from whenever somebody looks. */
interface Rule {
  readonly help: string;
  readonly labelNames?: readonly string[];
  readonly read: () => readonly Sample[];
}

/** Adds the metrics whose figures others keep. */
export function addCollected(registry: Registry, sources: MetricSources): void {
  const gauge = (name: string, rule: Rule) => addGauge(registry, name, rule);
  const counter = (name: string, rule: Rule) => addCounter(registry, name, rule);
  const { meshStats, modes, parkedCount, popCounts, hotList } = sources;
  const { pool = () => undefined, spool = () => undefined } = sources;
  gauge("build_info", {
    help: "Which version this is; always 1.",
    labelNames: ["version"],
    read: () => [[{ version: VERSION }, 1]],
  });
  gauge("maintenance_mode", {
    help: "Whether a maintenance mode is on, by what it holds back.",
    labelNames: ["mode"],
    read() {
      const { maintenance, popMaintenance } = modes();
      return [[{ mode: "push" }, Number(maintenance)], [{ mode: "pop" }, Number(popMaintenance)]];
    },
  });
  addPeers(registry, meshStats);
  gauge("pops_parked", { help: "Pops that wait for a message.", read: () => one(parkedCount()) });
  counter("pop_queries_total", {
    help: "Queries of pops, by why they were made: the pop had arrived, a wake, the backoff.",
    labelNames: ["cause"],
    read() {
      const { firstQueries, wakeQueries, pollQueries } = popCounts();
      return byCause(firstQueries, wakeQueries, pollQueries);
    },
  });
  counter("pop_query_hits_total", {
    help: "Queries of pops that found a batch, by why they were made.",
    labelNames: ["cause"],
    read() {
      const { repliesAtOnce, repliesByWake, repliesByPoll } = popCounts();
      return byCause(repliesAtOnce, repliesByWake, repliesByPoll);
    },
  });
  counter("pops_timed_out_total", {
    help: "Pops that waited and were answered empty when their timeout was over.",
    read: () => one(popCounts().emptyByTimeout),
  });
  gauge("hot_list_rings", {
    help: "Candidate rings, one for each queue and group that is polled here.",
    read: () => one(hotList().rings),
  });
  gauge("hot_list_bytes", {
    help: "What the candidate rings count as.",
    read: () => one(hotList().bytes),
  });
  counter("hot_list_refused_total", {
    help: "Rings and marks that found no room.",
    read: () => one(hotList().refused),
  });
  counter("hot_list_hints_dropped_total", {
    help: "Dirty hints that found no room on their way to the peers.",
    read: () => one(hotList().hintsDropped),
  });
  addPool(registry, pool);
  addSpool(registry, spool);
}

function addPeers(registry: Registry, meshStats: () => MeshStats): void {
  const enabled = (read: (stats: EnabledStats) => readonly Sample[]) =>
    known(() => {
      const stats = meshStats();
      return stats.enabled ? stats : undefined;
    }, read);
  const byPeer = (figure: (peer: EnabledStats["peers"][number]) => number) =>
    enabled(({ peers }) =>
      peers.map((peer): Sample => [{ peer: `${peer.host}:${peer.port}` }, figure(peer)])
    );
  const labelNames = ["peer"];
  addCounter(registry, "peer_messages_sent_total", {
    help: "Frames written to a peer, heartbeats included.",
    labelNames,
    read: byPeer((peer) => peer.messages_sent),
  });
  addCounter(registry, "peer_messages_dropped_total", {
    help: "Frames to a peer that were given up: it was down, or its queue full.",
    labelNames,
    read: byPeer((peer) => peer.messages_dropped),
  });
  addCounter(registry, "peer_messages_coalesced_total", {
    help: "Frames to a peer that left inside another one.",
    labelNames,
    read: byPeer((peer) => peer.messages_coalesced),
  });
  addGauge(registry, "peer_messages_queued", {
    help: "Frames that wait to be written to a peer.",
    labelNames,
    read: byPeer((peer) => peer.queued),
  });
  addGauge(registry, "peer_connected", {
    help: "Whether the connection to a peer stands.",
    labelNames,
    read: byPeer((peer) => Number(peer.connected)),
  });
  addCounter(registry, "messages_received_total", {
    help: "Frames received from all peers, of any kind.",
    read: enabled((stats) => one(stats.messages_received)),
  });
  addCounter(registry, "handshake_failures_total", {
    help: "Connections whose first frame was refused.",
    read: enabled((stats) => one(stats.handshake_failures)),
  });
  addGauge(registry, "servers", {
    help: "Replicas heard from, by whether that was lately.",
    labelNames: ["state"],
    read: enabled((stats) => [
      [{ state: "alive" }, stats.servers_alive],
      [{ state: "dead" }, stats.servers_dead],
    ]),
  });
}

function addPool(registry: Registry, pool: () => PoolStats | undefined): void {
  addGauge(registry, "postgres_connections", {
    help: "Connections to PostgreSQL, by whether they are in use.",
    labelNames: ["state"],
    read: known(pool, ({ busy, idle }) => [[{ state: "busy" }, busy], [{ state: "idle" }, idle]]),
  });
  addGauge(registry, "postgres_connections_max", {
    help: "How many connections to PostgreSQL there can be.",
    read: known(pool, ({ size }) => one(size)),
  });
  addGauge(registry, "postgres_calls_waiting", {
    help: "Calls that wait for a connection to PostgreSQL.",
    read: known(pool, ({ waiting }) => one(waiting)),
  });
}

function addSpool(registry: Registry, spool: () => SpoolDepth | undefined): void {
  addGauge(registry, "spool_records", {
    help: "Messages in the disk spool that wait for PostgreSQL.",
    read: known(spool, ({ pendingCount }) => one(pendingCount)),
  });
  addGauge(registry, "spool_oldest_age_seconds", {
    help: "How long the oldest of them has waited; 0 if there is none.",
    read: known(spool, ({ oldestAgeMs = 0 }) => one(oldestAgeMs / 1000)),
  });
}

/** The samples of what `source` gives; none, which is zero without labels, where it gives undefined. */
function known<T>(
  source: () => T | undefined,
  samples: (value: T) => readonly Sample[],
): () => readonly Sample[] {
  return () => {
    const value = source();
    return value === undefined ? [] : samples(value);
  };
}

function addGauge(registry: Registry, name: string, { help, labelNames = [], read }: Rule): void {
  new Gauge({
    name: PREFIX + name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.set(labels, value);
    },
  });
}

function addCounter(registry: Registry, name: string, { help, labelNames = [], read }: Rule): void {
  new Counter({
    name: PREFIX + name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      // Those that keep the figure never let it fall.
      this.reset();
      for (const [labels, value] of read()) this.inc(labels, value);
    },
  });
}

function one(value: number): readonly Sample[] {
  return [[{}, value]];
}

function byCause(first: number, wake: number, poll: number): readonly Sample[] {
  return [[{ cause: "first" }, first], [{ cause: "wake" }, wake], [{ cause: "poll" }, poll]];
}
