import { framingMutants } from "./framing.ts";
import { handshakeMutants } from "./handshake.ts";
import { meshMutants } from "./mesh.ts";
import { replicaMutants } from "./replica.ts";
import type { Mutant } from "./setup.ts";

/** Every mutant. */
export const MUTANTS: readonly Mutant[] = [
  ...framingMutants,
  ...handshakeMutants,
  ...meshMutants,
  ...replicaMutants,
];
