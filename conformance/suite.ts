import type { ConformanceCase } from "./case.ts";
import { framingCases } from "./cases/framing.ts";
import { handshakeCases } from "./cases/handshake.ts";
import { tenantCases } from "./cases/tenants.ts";

/** Every case, in the order in which they are listed and reported. */
export const CASES: readonly ConformanceCase[] = [
  ...framingCases,
  ...handshakeCases,
  ...tenantCases,
];
