/**
 * What one simulated mesh is like, drawn from its seed.
 *
 * @module
 */

import type { SimulatedNetworkOptions } from "./network.ts";
import type { Prng } from "./prng.ts";

/** What holds for a whole run. */
export interface Profile {
  /** How the network behaves. */
  readonly network: SimulatedNetworkOptions;
  /** The secret of all nodes; empty in open mode. */
  readonly secret: string;
  /** How often heartbeats go out, in milliseconds. */
  readonly heartbeatMs: number;
  /** After how long a silent server is dead and a stalled peer disconnected, in milliseconds. */
  readonly deadThresholdMs: number;
  /** How many frames a queue may hold. */
  readonly framesMax: number;
  /** How many bytes a queue may hold. */
  readonly bytesMax: number;
  /** The normal size of a decoder's buffer. */
  readonly chunkBytes: number;
  /** Whether every node has itself among its peers. */
  readonly isSelfListed: boolean;
  /** Whether the nodes' names also yield an address at which nobody answers. */
  readonly hasDeadAddresses: boolean;
  /** How many actions there are before all is healed. */
  readonly steps: number;
  /** The longest time between two actions, in milliseconds. */
  readonly gapMsMax: number;
}

/** The bounds of a queue outside of simulations (SND-1). */
const FRAMES_MAX = 1024;
const BYTES_MAX = 32 * 1024 * 1024;

/** Draws a profile. */
export function drawProfile(prng: Prng): Profile {
  const delayMin = prng.pick([0, 1, 1, 5]);
  const isRough = prng.chance(0.5);
  return {
    network: {
      seed: prng.uint32(),
      delayMs: [delayMin, delayMin + prng.pick([0, 1, 10, 60])],
      dnsDelayMs: prng.pick([0, 0, 3, 100]),
      capacityBytes: prng.pick([300, 2000, 16_384, 65_536]),
      partialWrites: isRough ? 0.3 : 0,
      segmentation: isRough ? 0.4 : 0,
    },
    secret: prng.chance(0.9) ? "s3cr3t" : "",
    heartbeatMs: prng.pick([700, 1000, 1000, 2500]),
    deadThresholdMs: prng.pick([3000, 5000, 5000]),
    // Small bounds are reached far more often than the real ones.
    framesMax: prng.pick([8, 64, FRAMES_MAX]),
    bytesMax: prng.pick([2000, 20_000, BYTES_MAX]),
    chunkBytes: prng.pick([16, 512, 4096]),
    isSelfListed: prng.chance(0.2),
    hasDeadAddresses: prng.chance(0.2),
    steps: prng.integer(20, 50),
    gapMsMax: prng.pick([50, 500, 1500]),
  };
}
