/**
 * How a simulated node ought to behave, whatever it was made of.
 *
 * @module
 */

/** What the simulator expects of one node. */
export interface NodeSettings {
  /** What it calls itself. */
  readonly serverId: string;
  /** The secret that it should have; empty in open mode. */
  readonly secret: string;
  /** How often a heartbeat goes out, in milliseconds. */
  readonly heartbeatMs: number;
  /** After how long a silent server is dead and a peer that takes no byte disconnected. */
  readonly deadThresholdMs: number;
  /** How many frames a queue may hold. */
  readonly framesMax: number;
  /** How many bytes a queue may hold. */
  readonly bytesMax: number;
}
