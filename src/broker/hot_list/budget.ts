/** Counts what many structures hold in memory against one bound. */
export class Budget {
  readonly #bytesMax: number;
  #bytes = 0;
  #refused = 0;

  /** Everything is still to be had. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** What is held now, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How many requests found no room. */
  get refused(): number {
    return this.#refused;
  }

  /** Takes `bytes`, and returns whether there was room for them. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) {
      this.#refused++;
      return false;
    }
    this.#bytes += bytes;
    return true;
  }

  /** Gives back what was taken. */
  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}
