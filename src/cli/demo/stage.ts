import type { Network } from "../../mesh/runtime.ts";
import type { Cleanup } from "./cleanup.ts";
import type { Guard } from "../guard.ts";
import type { ProcessEnd, ReplicaProcess } from "./replica_process.ts";
import type { Terminal } from "./terminal.ts";

/** What every part of the demo works with. */
export interface Stage {
  /** Where it tells what happens. */
  readonly terminal: Terminal;
  /** Aborts as soon as the demo is to end; its reason says why. */
  readonly signal: AbortSignal;
  /** Ends the demo. */
  readonly fail: (reason: Error) => void;
  /** What has to be undone at the end. */
  readonly cleanup: Cleanup;
  /** Cleans up where the demo cannot. */
  readonly guard: Guard;
  /** A directory of the demo's own, which is removed at the end. */
  readonly directory: string;
  /** For finding free ports. */
  readonly network: Network;
  /** A database of the demo's own. */
  readonly databaseUrl: string;
  /** Told of a replica that ended without having been asked to. */
  readonly onLost: (name: string, end: ProcessEnd) => void;
  /** Every replica that was started, for the sake of its log. */
  readonly processes: ReplicaProcess[];
}
