import type { CaseContext } from "./context.ts";

/** What a target may have; cases that need what it lacks are skipped. */
export const CAPABILITIES = ["mesh", "notify", "broker", "tenancy", "hotlist"] as const;

/** One of {@linkcode CAPABILITIES}. */
export type Capability = (typeof CAPABILITIES)[number];

/** How binding a requirement is. What an INFO case sees is reported, and never fails a run. */
export type Level = "must" | "should" | "info";

/** One thing that the suite checks. */
export interface ConformanceCase {
  /** `family/name`: written by hand, never renamed. */
  readonly id: string;
  /** The ids of the requirements that it checks, as `requirements.ts` lists them. */
  readonly requirements: readonly string[];
  /** How binding they are. */
  readonly level: Level;
  /** What must hold, in one sentence. */
  readonly sentence: string;
  /** What must run for it: a name in `topologies.ts`. */
  readonly topology: string;
  /** The capabilities that it needs; of those in an inner list, one is enough. */
  readonly needs?: readonly (Capability | readonly Capability[])[];
  /** The capabilities that rule it out: what it asks for holds of nodes without them alone. */
  readonly lacks?: readonly Capability[];
  /**
   * Whether it can judge one node that somebody else runs: one that `"observes"` makes GET requests and
   * records what the node sends; one that `"changes"` also dials, sends frames or pushes. Left out:
   * it cannot.
   */
  readonly attach?: "observes" | "changes";
  /** How long it may take, in milliseconds, before scaling; 30 000 where it is left out. */
  readonly timeoutMs?: number;
  /**
   * Judges.
   *
   * @throws {Failure} If the requirement does not hold.
   */
  run(context: CaseContext): Promise<void>;
}

/** The part of a case's id before the slash. */
export function familyOf(id: string): string {
  return id.slice(0, id.indexOf("/"));
}

/** Why a case cannot judge a target that has these capabilities, in words; undefined where it can. */
export function whyUnfit(
  { needs = [], lacks = [] }: Pick<ConformanceCase, "needs" | "lacks">,
  capabilities: ReadonlySet<Capability>,
): string | undefined {
  for (const need of needs) {
    const anyOf = typeof need === "string" ? [need] : need;
    if (!anyOf.some((each) => capabilities.has(each))) {
      return `the target does not have ${anyOf.join(" or ")}`;
    }
  }
  const ruledOutBy = lacks.find((each) => capabilities.has(each));
  return ruledOutBy === undefined ? undefined : `the target has ${ruledOutBy}`;
}
