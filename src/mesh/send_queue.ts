/** How much one peer's queue may hold. */
export interface SendQueueOptions {
  /** At most this many frames, from 1 up; 1024 by default (SND-1). */
  readonly framesMax?: number;
  /** At most this many bytes, from 1 up; 32 MiB by default. */
  readonly bytesMax?: number;
}

const BUFFER_BYTES_MIN = 4096;
/** A written-out buffer above this size is let go rather than kept for the next turn. */
const BUFFER_BYTES_KEPT = 262_144;

/**
 * The bounded queue of frames that wait for one peer (SND-1), laid out so that all that waits is one
 * contiguous run of bytes for one write.
 *
 * Two buffers take turns: frames are copied behind one another into the first while the kernel is
 * handed the second. A frame counts as queued until the kernel has taken its last byte.
 */
export class SendQueue {
  readonly #framesMax: number;
  readonly #bytesMax: number;

  /** The lengths of the queued frames, oldest at `#oldest`, as a ring. */
  readonly #lengths: Uint32Array;
  #oldest = 0;
  #frames = 0;
  #bytes = 0;
  /** Bytes of the oldest frame that the kernel has taken already. */
  #oldestTaken = 0;

  #filling: Uint8Array = new Uint8Array(BUFFER_BYTES_MIN);
  #filled = 0;
  #writing: Uint8Array | undefined;
  #writingStart = 0;
  #writingEnd = 0;

  /** Makes an empty queue. */
  constructor(options: SendQueueOptions = {}) {
    this.#framesMax = options.framesMax ?? 1024;
    this.#bytesMax = options.bytesMax ?? 33_554_432;
    this.#lengths = new Uint32Array(this.#framesMax);
  }

  /** Frames whose last byte the kernel has not taken. */
  get frames(): number {
    return this.#frames;
  }

  /** Bytes of those frames that the kernel has not taken. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether another frame, however short, would be refused. */
  get full(): boolean {
    return this.#frames === this.#framesMax || this.#bytes >= this.#bytesMax;
  }

  /** Copies a frame to the end of the queue. Returns false, and keeps nothing, where it is full. */
  push(frame: Uint8Array): boolean {
    const length = frame.length;
    if (this.#frames === this.#framesMax || this.#bytes + length > this.#bytesMax) return false;
    this.#reserve(this.#filled + length);
    this.#filling.set(frame, this.#filled);
    this.#filled += length;
    this.#lengths[(this.#oldest + this.#frames) % this.#framesMax] = length;
    this.#frames++;
    this.#bytes += length;
    return true;
  }

  /**
   * What to hand to the kernel next: all that waited when the previous run was used up, less what
   * {@linkcode SendQueue.taken | taken} reported since. Undefined where nothing waits. The bytes do
   * not change while they are being written.
   */
  next(): Uint8Array | undefined {
    if (this.#writingStart === this.#writingEnd) {
      if (this.#filled === 0) return undefined;
      const spare = this.#writing;
      this.#writing = this.#filling;
      this.#writingStart = 0;
      this.#writingEnd = this.#filled;
      this.#filling = spare !== undefined && spare.length <= BUFFER_BYTES_KEPT
        ? spare
        : new Uint8Array(BUFFER_BYTES_MIN);
      this.#filled = 0;
    }
    return this.#writing?.subarray(this.#writingStart, this.#writingEnd);
  }

  /** The kernel took `count` bytes of the run. Returns how many frames that completed. */
  taken(count: number): number {
    this.#writingStart += count;
    this.#bytes -= count;
    let completed = 0;
    let rest = this.#oldestTaken + count;
    while (this.#frames > 0) {
      const length = this.#lengths[this.#oldest]!;
      if (rest < length) break;
      rest -= length;
      this.#oldest = (this.#oldest + 1) % this.#framesMax;
      this.#frames--;
      completed++;
    }
    this.#oldestTaken = rest;
    return completed;
  }

  /**
   * Forgets everything, so that nothing meant for one connection is sent on the next (TOP-5). Returns
   * how many frames that dropped, the one that had left in part included.
   */
  clear(): number {
    const dropped = this.#frames;
    this.#oldest = 0;
    this.#frames = 0;
    this.#bytes = 0;
    this.#oldestTaken = 0;
    this.#filled = 0;
    if (this.#filling.length > BUFFER_BYTES_KEPT) this.#filling = new Uint8Array(BUFFER_BYTES_MIN);
    // A write that is still under way may hold the old buffer: it is let go, not used again.
    this.#writing = undefined;
    this.#writingStart = 0;
    this.#writingEnd = 0;
    return dropped;
  }

  #reserve(length: number): void {
    if (length <= this.#filling.length) return;
    const grown = new Uint8Array(
      Math.max(length, Math.min(this.#filling.length * 2, this.#bytesMax)),
    );
    grown.set(this.#filling.subarray(0, this.#filled));
    this.#filling = grown;
  }
}
