import type { MeshConfig } from "./config.ts";
import type { Inbound } from "./inbound.ts";
import type { ServerStats } from "./liveness.ts";
import type { PeerAddress } from "./peers.ts";
import type { PeerStats } from "./peer_stats.ts";

/** A node without peers, or switched off (TOP-7). */
export interface DisabledStats {
  /** Nothing is bound and nothing is sent. */
  readonly enabled: false;
  /** Said of both. */
  readonly reason: "no_peers";
}

/** A node at work (protocol, section 8). Counters only ever rise while the node runs. */
export interface EnabledStats {
  /** What this node calls itself. */
  readonly server_id: string;
  /** Always this. */
  readonly transport: "tcp-mesh";
  /** The mesh port: the one that is bound, else the one that was asked for. */
  readonly port: number;
  /** How many peers there are, this node itself not counted. */
  readonly peer_count: number;
  /** The peers, in the order of the configuration. */
  readonly peers: readonly PeerStats[];
  /** Configured peers that turned out to be this node itself; they are in no count. */
  readonly self: readonly PeerAddress[];
  /** Ids heard from within the dead threshold. */
  readonly servers_alive: number;
  /** Ids heard from, but not within it. */
  readonly servers_dead: number;
  /** Every id that is known. */
  readonly servers: readonly ServerStats[];
  /** Frames written to all peers, heartbeats included, HELLO not (SND-6). */
  readonly messages_sent: number;
  /** Frames received after a HELLO, of any kind (LIV-4). */
  readonly messages_received: number;
  /** Frames given up, of all peers (SND-1). */
  readonly messages_dropped: number;
  /** Frames that left inside another one, of all peers. */
  readonly messages_coalesced: number;
  /** The same as `handshake_failures`. */
  readonly signature_failures: number;
  /** First frames that were refused (HSK-4). */
  readonly handshake_failures: number;
  /** Always 0: frames carry no number. */
  readonly sequence_rejections: 0;
  /** The mesh is switched on and has peers. */
  readonly enabled: true;
  /** The mesh port is bound. */
  readonly running: boolean;
  /** Why it is not; left out before the start and after the close. */
  readonly reason?: "bind_failed";
}

/** How a node stands. */
export type MeshStats = DisabledStats | EnabledStats;

/** What {@linkcode collectStats} puts together. */
export interface StatsSources {
  /** How the node is set up. */
  readonly config: MeshConfig;
  /** Whether it is switched on and has peers. */
  readonly enabled: boolean;
  /** The peers but for this node itself. */
  readonly peers: readonly PeerStats[];
  /** Configured peers that are this node itself. */
  readonly self: readonly PeerAddress[];
  /** The receiving side. */
  readonly inbound: Inbound;
  /** Who was heard from. */
  readonly servers: readonly ServerStats[];
}

/** Puts the figures of a node together. */
export function collectStats(sources: StatsSources): MeshStats {
  const { config, enabled, peers, self, inbound, servers } = sources;
  if (!enabled) return { enabled: false, reason: "no_peers" };
  const alive = servers.filter((server) => server.alive).length;
  const running = inbound.boundPort !== undefined;
  return {
    server_id: config.serverId,
    transport: "tcp-mesh",
    port: inbound.boundPort ?? config.port,
    peer_count: peers.length,
    peers,
    self,
    servers_alive: alive,
    servers_dead: servers.length - alive,
    servers,
    messages_sent: sum(peers, (peer) => peer.messages_sent),
    messages_received: inbound.received,
    messages_dropped: sum(peers, (peer) => peer.messages_dropped),
    messages_coalesced: sum(peers, (peer) => peer.messages_coalesced),
    signature_failures: inbound.handshakeFailures,
    handshake_failures: inbound.handshakeFailures,
    sequence_rejections: 0,
    enabled: true,
    running,
    ...(inbound.bindFailed ? { reason: "bind_failed" } : {}),
  };
}

function sum(peers: readonly PeerStats[], figure: (peer: PeerStats) => number): number {
  return peers.reduce((total, peer) => total + figure(peer), 0);
}
