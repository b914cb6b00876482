import type { SpoolLog } from "./spool_log.ts";
import type { SpoolPartition } from "./spool_record.ts";

/** All logs of a spool, in the order in which they were begun. */
export class Catalog {
  /** Those that have segments, and the one that this process appends to. */
  readonly logs: SpoolLog[] = [];
  #lastNumber = 0;

  /** A number for a new segment, higher than all before. */
  nextNumber(): number {
    return ++this.#lastNumber;
  }

  /** A segment with this number exists. */
  noteNumber(number: number): void {
    this.#lastNumber = Math.max(this.#lastNumber, number);
  }

  /** The size of all segments, in bytes. */
  get bytes(): number {
    let sum = 0;
    for (const log of this.logs) {
      for (const segment of log.segments) sum += segment.bytes;
    }
    return sum;
  }

  /** When the oldest record was accepted, in milliseconds since 1970, or a little earlier. */
  get oldestAt(): number | undefined {
    let oldest: number | undefined;
    for (const log of this.logs) {
      for (const { oldestAt } of log.segments) {
        if (oldestAt !== undefined && !(oldest! <= oldestAt)) oldest = oldestAt;
      }
    }
    return oldest;
  }

  /** How many records wait: those that can be opened, or those that cannot. */
  pendingCount({ isLocked }: { readonly isLocked: boolean }): number {
    return this.#sum(isLocked, (log) => log.pendingCount);
  }

  /** How many bytes wait: in logs that can be opened, or in those that cannot. */
  pendingBytes({ isLocked }: { readonly isLocked: boolean }): number {
    return this.#sum(isLocked, (log) => log.pendingBytes);
  }

  /** Whether records of any of the partitions wait: ones that can be opened, or ones that cannot. */
  holdsAny(
    partitions: readonly SpoolPartition[],
    { isLocked }: { readonly isLocked: boolean },
  ): boolean {
    return this.logs.some((log) =>
      log.isLocked === isLocked && partitions.some((partition) => log.holds(partition))
    );
  }

  #sum(isLocked: boolean, value: (log: SpoolLog) => number): number {
    return this.logs.reduce((sum, log) => log.isLocked === isLocked ? sum + value(log) : sum, 0);
  }
}
