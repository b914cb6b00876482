/** What a {@linkcode Segment} begins with. */
export interface SegmentOptions {
  /** Orders the segments of a spool. */
  readonly number: number;
  /** The file. */
  readonly path: string;
  /** How much of the file counts, in bytes. */
  readonly bytes?: number;
  /** Nothing is appended to it any more. */
  readonly isEnded?: boolean;
}

/**
 * One file of records: how far it is synced, and how far it is drained. What lies in the file beyond
 * {@linkcode Segment.bytes | bytes} was never acknowledged and is not read.
 */
export class Segment {
  /** Orders the segments of a spool. */
  readonly number: number;
  /** The file. */
  readonly path: string;
  /** Nothing is appended to it any more. */
  isEnded: boolean;
  #bytes: number;
  #count = 0;
  #drainedBytes = 0;
  #drainedCount = 0;
  #oldestAt: number | undefined;

  /** Nothing of it is drained yet. */
  constructor({ number, path, bytes = 0, isEnded = false }: SegmentOptions) {
    this.number = number;
    this.path = path;
    this.#bytes = bytes;
    this.isEnded = isEnded;
  }

  /** How many bytes of the file are synced. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Where the first record stands that is not drained. */
  get drainedBytes(): number {
    return this.#drainedBytes;
  }

  /** Whether nothing is left to drain in what is there now. */
  get isDrained(): boolean {
    return this.#drainedBytes >= this.#bytes;
  }

  /** How many records wait to be drained. */
  get pendingCount(): number {
    return this.#count - this.#drainedCount;
  }

  /** How many bytes wait to be drained. */
  get pendingBytes(): number {
    return Math.max(this.#bytes - this.#drainedBytes, 0);
  }

  /**
   * When the oldest record that waits was accepted, or a little earlier: after a drained batch, the
   * time of the last one drained stands for that of the next. Undefined where none waits.
   */
  get oldestAt(): number | undefined {
    return this.isDrained ? undefined : this.#oldestAt;
  }

  /** A record was found in it, or appended and synced. */
  count(record: { readonly position: number; readonly acceptedAt: number }): void {
    this.#count++;
    this.#oldestAt ??= record.acceptedAt;
  }

  /** So many bytes more are synced. */
  grow(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Everything before `end` is done with, one more record among it if `record` is given. */
  pass(end: number, record?: { readonly acceptedAt: number }): void {
    this.#drainedBytes = end;
    if (record !== undefined) {
      this.#drainedCount++;
      this.#oldestAt = record.acceptedAt;
    }
    // A record that was damaged later was counted when it was appended.
    if (this.isDrained) this.#drainedCount = this.#count;
  }

  /** Begins again at its first record. */
  rewind(): void {
    this.#drainedBytes = 0;
    this.#drainedCount = 0;
  }
}
