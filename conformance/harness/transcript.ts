/** One thing that happened in a case. */
export interface TranscriptEntry {
  /** When, in milliseconds since the case began. */
  readonly atMs: number;
  /** What, in one line. */
  readonly line: string;
}

/** How many entries are kept from a case's beginning and from its end. */
const KEPT = { first: 40, last: 120 };

/**
 * What went over the wire and over HTTP while one case ran. Bounded: of a case that moves very much,
 * the beginning and the end are kept.
 */
export class Transcript {
  readonly #begunAt = performance.now();
  readonly #first: TranscriptEntry[] = [];
  #last: TranscriptEntry[] = [];
  #omitted = 0;

  /** Milliseconds since the case began. */
  get elapsedMs(): number {
    return performance.now() - this.#begunAt;
  }

  /** Adds a line. */
  add(line: string): void {
    const entry = { atMs: this.elapsedMs, line };
    if (this.#first.length < KEPT.first) {
      this.#first.push(entry);
      return;
    }
    this.#last.push(entry);
    if (this.#last.length >= 2 * KEPT.last) {
      this.#omitted += this.#last.length - KEPT.last;
      this.#last = this.#last.slice(-KEPT.last);
    }
  }

  /** What is kept, in order; a line says where something was left out. */
  entries(): TranscriptEntry[] {
    const last = this.#last.slice(-KEPT.last);
    const omitted = this.#omitted + this.#last.length - last.length;
    if (omitted === 0) return [...this.#first, ...last];
    const atMs = last[0]?.atMs ?? this.elapsedMs;
    return [...this.#first, { atMs, line: `(${omitted} lines left out)` }, ...last];
  }
}

/** Where to write down what happens: the transcript of the case that runs, if one does. */
export type Recorder = (line: string) => void;
