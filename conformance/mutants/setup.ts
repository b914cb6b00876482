import type { Env } from "../../src/mesh/env.ts";
import type { Mesh, MeshOptions, MeshParts } from "../../src/mesh/mesh.ts";
import type { Runtime } from "../../src/mesh/runtime.ts";
import type { Store } from "../../src/broker/mod.ts";

/** What a node is put together from: the places in which a fault can be planted. */
export interface Setup {
  /** The environment that its configuration is read from. */
  readonly env: Env;
  /** Connections, time and randomness. */
  readonly runtime: Runtime;
  /** The parts of its mesh that are not the usual ones. */
  readonly parts: Partial<MeshParts>;
  /** Changes what its mesh is made of. */
  readonly meshOptions: (options: MeshOptions) => MeshOptions;
  /** Puts its mesh together. */
  readonly createMesh: (options: MeshOptions, parts: Partial<MeshParts>) => Mesh;
  /** Changes what its stats routes answer. */
  readonly stats: (stats: Stats, route: string) => Stats;
  /** What it does before it answers that a wake was sent; a mesh-only node alone. */
  readonly beforeNotified: (mesh: Mesh) => Promise<void>;
  /** Changes how its queues are stored; a replica alone. */
  readonly store: (store: Store, mesh: () => Mesh | undefined) => Store;
}

/** The body of a stats route. */
export type Stats = Readonly<Record<string, unknown>>;

/** Puts a fault into a node. */
export type Plant = (setup: Setup) => Setup;

/** A node with one deliberate fault. */
export interface Mutant {
  /** Its name. */
  readonly name: string;
  /** What is wrong with it, in one sentence. */
  readonly fault: string;
  /** Which node it is: one of the mesh alone, or a whole replica. */
  readonly node: "mesh" | "replica";
  /** The cases that must fail on it: five at most, written down before it first ran. */
  readonly caughtBy: readonly string[];
  /** Cases, or families, that may fail as well, since the fault lies in their way. */
  readonly mayFail?: readonly string[];
  /** Plants the fault. */
  readonly plant: Plant;
}

/** Puts wrong parts in place of right ones. */
export function withParts(parts: Partial<MeshParts>): Plant {
  return (setup) => ({ ...setup, parts: { ...setup.parts, ...parts } });
}

/** Reads the configuration from a changed environment. */
export function withEnv(change: (env: Env) => Record<string, string | undefined>): Plant {
  return (setup) => ({ ...setup, env: { ...setup.env, ...change(setup.env) } });
}

/** Changes what the mesh is made of. */
export function withMeshOptions(change: (options: MeshOptions) => Partial<MeshOptions>): Plant {
  return (setup) => ({
    ...setup,
    meshOptions: (options) => {
      const before = setup.meshOptions(options);
      return { ...before, ...change(before) };
    },
  });
}

/** Changes the stats. */
export function withStats(change: (stats: Stats, route: string) => Stats): Plant {
  return (setup) => ({
    ...setup,
    stats: (stats, route) => change(setup.stats(stats, route), route),
  });
}
