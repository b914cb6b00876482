import type { Prng } from "../simulation/prng.ts";
import type { History } from "./history.ts";
import type { Progress } from "./progress.ts";
import type { SoakReplica } from "./replicas.ts";

/** How one soak is set up. */
export interface SoakPlan {
  /** For how long messages are pushed, in milliseconds. */
  readonly durationMs: number;
  /** How many of each kind. */
  readonly producers: number;
  /** The consumers' groups; `__QUEUE_MODE__` is queue mode. Each has as many as this says. */
  readonly consumers: ReadonlyMap<string, number>;
  /** The group that joins later, as `new`. */
  readonly lateGroup: string;
  /** The queue's name, and those of its partitions. */
  readonly queue: string;
  readonly partitions: readonly string[];
  /** For how long a batch is leased, in milliseconds: whole seconds. */
  readonly leaseMs: number;
  /** For how long a partition waits after a failure, in milliseconds. */
  readonly retryDelayMs: number;
  /** For how long PostgreSQL is stopped, and again frozen, in milliseconds. */
  readonly outageMs: number;
  /** How many messages may be pushed before all groups are done with them. */
  readonly backlogMax: number;
}

/** What everybody in a soak works with. */
export interface World {
  readonly plan: SoakPlan;
  readonly prng: Prng;
  readonly history: History;
  readonly progress: Progress;
  readonly replicas: readonly SoakReplica[];
  /** Aborts where the soak ends early. */
  readonly signal: AbortSignal;
}
