import type { Budget } from "./budget.ts";
import { NO_CANDIDATES, Taken } from "./taken.ts";

/** What a candidate is counted as beside its name, in bytes: its node and its place in the map. */
const CANDIDATE_BYTES = 128;

/** What a character of a name is counted as, in bytes. */
const CHARACTER_BYTES = 2;

/** A partition that may hold something to take. The ring alone changes it. */
export class Candidate {
  /** The partition's name. */
  readonly partition: string;
  /** Which mark of the ring was its latest. */
  epoch = 0;
  /** The one before it. */
  previous: Candidate = this;
  /** The one after it. */
  next: Candidate = this;

  /** Makes one that is in no ring. */
  constructor(partition: string) {
    this.partition = partition;
  }
}

/**
 * The partitions of one queue that may hold something for one group. Only those that were marked and
 * not found empty since: its size follows the busy partitions, not all.
 *
 * They are taken in turn: a mark puts a new one last, and one that is taken goes last.
 */
export class CandidateRing {
  readonly #budget: Budget;
  readonly #candidates = new Map<string, Candidate>();
  /** Joins the last to the first; itself no candidate. */
  readonly #end = new Candidate("");
  #epoch = 0;
  #isDropped = false;

  /** Makes an empty ring; its candidates are counted in `budget`. */
  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** How many candidates there are. */
  get size(): number {
    return this.#candidates.size;
  }

  /** How many marks there were. The epoch of a later one is greater. */
  get epoch(): number {
    return this.#epoch;
  }

  /**
   * Says that a partition may hold something. Where there is no room for it, it is left out.
   *
   * Epochs are the ring's own count, so that one which is marked, cleared and marked again never has
   * an epoch that it had before, and nothing need be kept of those that were cleared.
   */
  mark(partition: string): void {
    let candidate = this.#candidates.get(partition);
    if (candidate === undefined) {
      if (this.#isDropped || !this.#budget.take(bytesOf(partition))) return;
      candidate = new Candidate(partition);
      this.#candidates.set(partition, candidate);
      link(candidate, this.#end);
    }
    candidate.epoch = ++this.#epoch;
  }

  /** Takes up to `count` candidates, longest waiting first. They stay candidates. */
  take(count: number): Taken {
    const size = Math.min(count, this.#candidates.size);
    if (size === 0) return NO_CANDIDATES;
    const candidates: Candidate[] = [];
    for (let i = 0; i < size; i++) {
      const candidate = this.#end.next;
      unlink(candidate);
      link(candidate, this.#end);
      candidates.push(candidate);
    }
    return new Taken(this, candidates);
  }

  /** Removes a candidate that was found empty, unless it was marked since it had `epoch`. */
  clear(candidate: Candidate, epoch: number): void {
    if (candidate.epoch === epoch && this.#holds(candidate)) this.#remove(candidate);
  }

  /** Lets a candidate be the next one to be taken. */
  putFirst(candidate: Candidate): void {
    if (!this.#holds(candidate)) return;
    unlink(candidate);
    link(candidate, this.#end.next);
  }

  /** Removes all candidates that were not marked since the ring had `epoch`. */
  clearUnmarkedSince(epoch: number): void {
    for (let candidate = this.#end.next; candidate !== this.#end;) {
      const { next } = candidate;
      if (candidate.epoch <= epoch) this.#remove(candidate);
      candidate = next;
    }
  }

  /** Removes everything and takes no more marks. */
  drop(): void {
    this.clearUnmarkedSince(this.#epoch);
    this.#isDropped = true;
  }

  #holds(candidate: Candidate): boolean {
    return this.#candidates.get(candidate.partition) === candidate;
  }

  #remove(candidate: Candidate): void {
    this.#candidates.delete(candidate.partition);
    unlink(candidate);
    this.#budget.give(bytesOf(candidate.partition));
  }
}

function bytesOf(partition: string): number {
  return CANDIDATE_BYTES + CHARACTER_BYTES * partition.length;
}

function link(candidate: Candidate, next: Candidate): void {
  const { previous } = next;
  candidate.previous = previous;
  candidate.next = next;
  previous.next = candidate;
  next.previous = candidate;
}

function unlink({ previous, next }: Candidate): void {
  previous.next = next;
  next.previous = previous;
}
