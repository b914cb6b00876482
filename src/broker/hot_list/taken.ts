import type { Candidate, CandidateRing } from "./ring.ts";

/** How a pop fared with what it had {@linkcode Taken | taken}. */
export interface PopFinding {
  /**
   * The partitions that it claimed something of, candidates or not; none where there was nothing. It
   * must have tried the candidates in their order.
   */
  readonly claimed: readonly string[];
  /** Those of them that can be taken from again at once; none by default. */
  readonly left?: readonly string[];
}

/**
 * Candidates that one pop tries. Their order is the order in which to try them, so that every
 * partition has its turn.
 */
export class Taken {
  readonly #ring: CandidateRing | undefined;
  readonly #candidates: readonly Candidate[];
  readonly #epochs: readonly number[];
  /** The names, in order. Where there are none, PostgreSQL alone knows. */
  readonly partitions: readonly string[];

  /** Notes the epochs that the candidates have now. */
  constructor(ring: CandidateRing | undefined, candidates: readonly Candidate[]) {
    this.#ring = ring;
    this.#candidates = candidates;
    this.#epochs = candidates.map(({ epoch }) => epoch);
    this.partitions = candidates.map(({ partition }) => partition);
  }

  /**
   * Says what became of them. Those that were tried and hold nothing that can be taken now, claimed
   * ones included, are cleared unless they were marked since they were taken; what makes them
   * available again will mark them. Those that were not tried are the next ones again.
   *
   * A pop that failed says nothing: then all stay candidates.
   */
  settle({ claimed, left = [] }: PopFinding): void {
    const tried = this.#tried(new Set(claimed));
    const kept = new Set(left);
    for (let i = this.#candidates.length - 1; i >= 0; i--) {
      const candidate = this.#candidates[i]!;
      if (i >= tried) this.#ring?.putFirst(candidate);
      else if (!kept.has(candidate.partition)) this.#ring?.clear(candidate, this.#epochs[i]!);
    }
  }

  /** How many were tried: up to the last one claimed, and all of them before any other partition. */
  #tried(claimed: ReadonlySet<string>): number {
    let tried = 0;
    let count = 0;
    for (const [index, partition] of this.partitions.entries()) {
      if (!claimed.has(partition)) continue;
      tried = index + 1;
      count++;
    }
    return count === 0 || count < claimed.size ? this.partitions.length : tried;
  }
}

/** Nothing taken: it is left to PostgreSQL. */
export const NO_CANDIDATES: Taken = new Taken(undefined, []);
