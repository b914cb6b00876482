import { type Topology, topology } from "./topology.ts";

/** A beat in these topologies is for the tests of heartbeats and liveness, in milliseconds. */
export const BEAT_MS = 200;

/** And this is how long a silent peer counts as alive there, in milliseconds. */
export const DEAD_MS = 2000;

/** Beats that are too rare to come in between: so the frames that a case counts are its own. */
const NO_BEATS = { QUEEN_SYNC_HEARTBEAT_MS: "600000", QUEEN_SYNC_DEAD_THRESHOLD_MS: "600000" };

/** A parked pop asks again so rarely that only a wake can explain a prompt reply. */
const RARE_POLLS = { POP_WAIT_INITIAL_INTERVAL_MS: "30000", POP_WAIT_MAX_INTERVAL_MS: "30000" };

const BEATS = {
  QUEEN_SYNC_HEARTBEAT_MS: String(BEAT_MS),
  QUEEN_SYNC_DEAD_THRESHOLD_MS: String(DEAD_MS),
};

/** How often a replica reconciles there, in milliseconds. */
const REFRESH_MS = 300;

const TOPOLOGIES: readonly Topology[] = [
  topology("none", "Nothing runs; the case starts its own nodes.", { nodes: [], suitePeers: [] }),
  topology("signed", "One node with a secret; its only peer is the suite; no heartbeats.", {
    env: { ...NO_BEATS, ...RARE_POLLS },
  }),
  topology("open", "One node without a secret; its only peer is the suite; no heartbeats.", {
    secret: false,
    env: { ...NO_BEATS, ...RARE_POLLS },
  }),
  topology(
    "beating",
    `One node with a secret whose only peer is the suite; a beat every ${BEAT_MS} ms, dead after ${DEAD_MS} ms.`,
    { env: { ...BEATS, ...RARE_POLLS } },
  ),
  topology("slow", "One node with two peers, both the suite; no heartbeats.", {
    nodes: [{ name: "A", peers: ["suite", "other"] }],
    suitePeers: ["suite", "other"],
    env: { ...NO_BEATS, ...RARE_POLLS },
  }),
  topology(
    "bystander",
    "Node A, whose only peer is the suite, and node B without peers on the same database: what B stores, A learns from the suite's frames alone.",
    {
      nodes: [{ name: "A", peers: ["suite"] }, { name: "B", peers: [] }],
      env: { ...NO_BEATS, ...RARE_POLLS },
    },
  ),
  topology("tenancy", "As bystander, with QUEEN_TENANCY_HEADER on.", {
    nodes: [{ name: "A", peers: ["suite"] }, { name: "B", peers: [] }],
    env: { ...NO_BEATS, ...RARE_POLLS, QUEEN_TENANCY_HEADER: "true" },
  }),
  topology("pair", "Two nodes that are each other's peers; parked pops poll every 30 s.", {
    nodes: [{ name: "A", peers: ["B"] }, { name: "B", peers: ["A"] }],
    suitePeers: [],
    env: { ...BEATS, ...RARE_POLLS },
  }),
  topology("trio", "Three nodes, each the peer of the others; parked pops poll every 30 s.", {
    nodes: [
      { name: "A", peers: ["B", "C"] },
      { name: "B", peers: ["A", "C"] },
      { name: "C", peers: ["A", "B"] },
    ],
    suitePeers: [],
    env: { ...BEATS, ...RARE_POLLS },
  }),
  topology("unmeshed", "Two nodes on one database without the mesh.", {
    nodes: [{ name: "A", peers: [] }, { name: "B", peers: [] }],
    suitePeers: [],
    env: { QUEEN_HOTLIST_RESEED_MS: "3600000" },
  }),
  topology(
    "reconcile",
    `As bystander, with pops that poll as usual, and QUEEN_CACHE_REFRESH_INTERVAL_MS at ${REFRESH_MS} ms: what A learns without a frame, it finds by itself.`,
    {
      nodes: [{ name: "A", peers: ["suite"] }, { name: "B", peers: [] }],
      env: {
        ...NO_BEATS,
        QUEEN_CACHE_REFRESH_INTERVAL_MS: String(REFRESH_MS),
        QUEEN_HOTLIST_RESEED_MS: "3600000",
      },
    },
  ),
];

const BY_NAME = new Map(TOPOLOGIES.map((each) => [each.name, each]));

/**
 * A topology by its name.
 *
 * @throws {RangeError} If there is none.
 */
export function topologyNamed(name: string): Topology {
  const found = BY_NAME.get(name);
  if (!found) throw new RangeError(`no topology is named "${name}"`);
  return found;
}
