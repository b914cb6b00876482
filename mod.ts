/**
 * The mesh: best-effort hints between the replicas of a service over one PostgreSQL database.
 *
 * {@linkcode Mesh} is one node. It needs a {@linkcode Runtime}, from `@queen/mesh/deno` or
 * `@queen/mesh/node`, and a {@linkcode MeshConfig}, your own or read by
 * {@linkcode meshConfigFromEnv}. What lies under it (frames, messages, the HELLO) is here as well,
 * for tools that speak the protocol by hand.
 *
 * @module
 */

export {
  MESH_DEFAULTS,
  MESH_PORT,
  type MeshConfig,
  meshConfigFromEnv,
  type MeshConfigSources,
  type MeshSettings,
} from "./src/mesh/config.ts";
export { ConfigError, type Env } from "./src/mesh/env.ts";
export type { ServerStats } from "./src/mesh/liveness.ts";
export { Mesh, type MeshOptions } from "./src/mesh/mesh.ts";
export type { PeerState, PeerStats } from "./src/mesh/peer_stats.ts";
export { type ParsedPeers, parsePeers, type PeerAddress } from "./src/mesh/peers.ts";
export type * from "./src/mesh/runtime.ts";
export type { DisabledStats, EnabledStats, MeshStats } from "./src/mesh/stats.ts";
export {
  encodeFrame,
  type Frame,
  FRAME_HEADER_BYTES,
  FRAME_LENGTH_MAX,
  FRAME_TYPE,
  FrameDecoder,
  type FrameDecoderOptions,
  FrameError,
} from "./src/protocol/frame.ts";
export * from "./src/protocol/hello.ts";
export * from "./src/protocol/messages.ts";
export * from "./src/protocol/tenant.ts";
