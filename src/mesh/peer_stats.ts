/**
 * Where a peer stands: `waiting` for the next attempt, `dialling`, `greeting` (the HELLO is being
 * written), `connected`, `self` (it is this very node) or `closed`.
 */
export type PeerState = "waiting" | "dialling" | "greeting" | "connected" | "self" | "closed";

/** One peer as an operator sees it (protocol, section 8). */
export interface PeerStats {
  /** The configured host. */
  readonly host: string;
  /** The configured port. */
  readonly port: number;
  /** The HELLO was written and the connection stands. */
  readonly connected: boolean;
  /** The same as `connected`. */
  readonly resolved: boolean;
  /** The address that it is connected to; null while it is not connected. */
  readonly resolved_ip: string | null;
  /** Where it stands. */
  readonly state: PeerState;
  /** Why it is not connected, or was not until a moment ago; null once that is over. */
  readonly last_error: string | null;
  /** Frames asked for: the sum of the four below. */
  readonly messages_asked: number;
  /** Frames whose last byte the kernel took (SND-6). */
  readonly messages_sent: number;
  /** Frames given up: the peer was down, or its queue full (SND-1). */
  readonly messages_dropped: number;
  /** Frames that left inside another one. */
  readonly messages_coalesced: number;
  /** Frames that wait. */
  readonly queued: number;
}
