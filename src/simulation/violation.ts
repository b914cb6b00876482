/**
 * What it means that a simulated mesh did wrong.
 *
 * @module
 */

/** The rules that are watched: requirements of the protocol, or of a mesh that can be closed. */
export type Rule =
  /** A listener lets in whoever it should not, or keeps out whom it should let in. */
  | "handshake"
  /** What was dispatched is not what the accepted connections said, once each and in order. */
  | "dispatch"
  /** A message applied twice changes more than one applied once. */
  | "idempotence"
  /** Something was sent to a peer that was asked for before the connection stood. */
  | "stale"
  /** Something was sent that this node was never asked for. */
  | "forwarded"
  /** Frames to one peer were sent in another order than they were asked for. */
  | "order"
  /** Bytes went out that are no frames, or no HELLO first. */
  | "wire"
  /** A queue holds more than it may. */
  | "bounds"
  /** Sent, dropped, coalesced and queued do not add up, or say what did not happen. */
  | "accounting"
  /** A redial comes too soon, too late or never, or a dial lasts too long. */
  | "redial"
  /** A peer that takes no byte was not disconnected in time. */
  | "stall"
  /** A heartbeat is overdue. */
  | "heartbeat"
  /** Who is alive was judged wrongly. */
  | "liveness"
  /** A healed mesh does not connect, or does not carry a message. */
  | "heal"
  /** A closed mesh left a timer or a socket, or did not close. */
  | "close"
  /** A process broke a contract of the seam. */
  | "seam"
  /** An error came out of a timer, or timers never let time move on. */
  | "crash";

/** One thing that a simulated mesh did wrong. */
export interface Violation {
  /** The rule that it broke. */
  readonly rule: Rule;
  /** What happened, in words. */
  readonly text: string;
}

/** Takes what went wrong. */
export type Report = (rule: Rule, text: string) => void;
