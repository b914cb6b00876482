/** A node that a topology starts. */
export interface NodeDescription {
  /** What it is called. */
  readonly name: string;
  /** Whom it dials: other nodes and the suite's own peers by name. */
  readonly peers: readonly string[];
  /** Its own settings, over those of the topology; undefined leaves a variable unset. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** What runs while a group of cases is judged. */
export interface Topology {
  /** What cases name it by. */
  readonly name: string;
  /** What it is, in one sentence. */
  readonly sentence: string;
  /** The nodes of the target; the first is the one that most cases judge. */
  readonly nodes: readonly NodeDescription[];
  /** The peers that the suite plays, by name: it listens, and the nodes dial it. */
  readonly suitePeers: readonly string[];
  /** Whether the nodes get a secret. */
  readonly secret: boolean;
  /** Settings of every node, over the suite's defaults; undefined leaves a variable unset. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** How a topology differs from the plainest. */
type Differences = Partial<Omit<Topology, "name" | "sentence">>;

/** Makes a topology: one node with a secret, whose only peer is the suite, unless told otherwise. */
export function topology(name: string, sentence: string, differences: Differences = {}): Topology {
  return {
    name,
    sentence,
    nodes: [{ name: "A", peers: ["suite"] }],
    suitePeers: ["suite"],
    secret: true,
    env: {},
    ...differences,
  };
}
