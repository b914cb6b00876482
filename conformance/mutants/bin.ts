/**
 * Runs a node with one deliberate fault, by the mutant's name; `mesh` and `replica` are those without.
 *
 * @module
 */

import process from "node:process";
import { MUTANTS } from "./mutants.ts";

const [name] = process.argv.slice(2);
const mutant = MUTANTS.find((each) => each.name === name) ??
  (name === "mesh" || name === "replica" ? { node: name, plant: null } : undefined);
if (!mutant) {
  process.stderr.write(`no mutant is named "${name}"; there are:\n`);
  for (const each of MUTANTS) process.stderr.write(`  ${each.name}: ${each.fault}\n`);
  process.exit(2);
}
const plant = mutant.plant ?? ((setup) => setup);
process.exit(
  mutant.node === "mesh"
    ? await (await import("./mesh_node.ts")).runMeshNode(plant)
    : await (await import("./replica_node.ts")).runReplicaNode(plant),
);
