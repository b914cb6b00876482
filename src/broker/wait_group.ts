import type { Waiter } from "./waiter.ts";
import { WaitLine, type WaitLineOptions } from "./wait_line.ts";

/** The line of those who take from any partition. No partition has this name. */
const ANY = "";

/** What a {@linkcode WaitGroup} is made of. */
export interface WaitGroupOptions extends Omit<WaitLineOptions, "partition"> {
  /** Called when the last waiter has left. */
  readonly onEmpty: () => void;
}

/**
 * The waiters of one consumer group of one queue, and the wakes that they hold.
 *
 * A partition is leased to one pop at a time, so a wake for it releases one waiter. Until that
 * waiter's query has ended, another wake for the same partition goes to the same waiter: it queries
 * once more if it comes up empty, and nobody else is disturbed.
 */
export class WaitGroup {
  readonly #options: WaitGroupOptions;
  readonly #lines = new Map<string, WaitLine>();
  /** Everybody in it, who armed first before the others. */
  readonly #waiters = new Set<Waiter>();
  /** Who holds the wake for a partition. */
  readonly #holders = new Map<string, Waiter>();

  /** Makes a group without waiters. */
  constructor(options: WaitGroupOptions) {
    this.#options = options;
  }

  /** The line of those who take from `partition` alone, or from any where it is left out. */
  line(partition: string = ANY): WaitLine {
    let line = this.#lines.get(partition);
    if (line === undefined) {
      line = new WaitLine({ ...this.#options, partition });
      this.#lines.set(partition, line);
    }
    return line;
  }

  /** Since when somebody has been waiting in it without a break, in milliseconds. */
  get oldestArrival(): number | undefined {
    for (const { armedAt } of this.#waiters) return armedAt;
    return undefined;
  }

  /** Everybody in it. */
  waiters(): Waiter[] {
    return [...this.#waiters];
  }

  /** Takes in a new waiter. */
  arm(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  /**
   * Says that there is something to take from `partition`. Where it is `""`, nobody knows which
   * partition it is, so that one waiter of each line has to look.
   */
  wake(partition: string): void {
    if (partition !== ANY) {
      this.#give(partition, this.#linesFor(partition));
      return;
    }
    for (const line of this.#lines.values()) this.#give(line.partition, [line]);
  }

  /**
   * Takes back what `waiter` has spent by a query that came up empty: the wakes that were given
   * before it began.
   */
  spend(waiter: Waiter): void {
    for (const partition of waiter.wakes.keys()) this.#spendOne(waiter, partition, waiter.began);
  }

  /**
   * Says that the query of `waiter` took a batch of `partition`: whoever was woken for it before that
   * query began finds nothing more there.
   */
  take(partition: string, waiter: Waiter): void {
    const holder = this.#holders.get(partition);
    if (holder !== undefined) this.#spendOne(holder, partition, waiter.began);
    this.#spendOne(waiter, ANY, waiter.began);
  }

  /** Takes a waiter out, gives the wakes that it holds to others, and forgets what is empty. */
  leave(waiter: Waiter): void {
    this.#waiters.delete(waiter);
    const partitions = [...waiter.wakes.keys()];
    waiter.wakes.clear();
    for (const partition of partitions) this.#holders.delete(partition);
    for (const partition of partitions) this.#give(partition, this.#linesFor(partition));
    if (!waiter.line.isEmpty) return;
    this.#lines.delete(waiter.line.partition);
    if (this.#lines.size === 0) this.#options.onEmpty();
  }

  #give(partition: string, lines: readonly WaitLine[]): void {
    for (const line of lines) line.wake();
    const holder = this.#holders.get(partition);
    if (holder !== undefined) {
      holder.hold(partition);
      return;
    }
    const waiter = oldestParked(lines) ?? nextQuerying(lines);
    if (waiter === undefined) return;
    this.#holders.set(partition, waiter);
    waiter.hold(partition);
    if (waiter.isParked) waiter.release("wake");
  }

  #spendOne(holder: Waiter, partition: string, began: number): void {
    const givenAt = holder.wakes.get(partition);
    if (givenAt === undefined || givenAt > began) return;
    holder.wakes.delete(partition);
    this.#holders.delete(partition);
  }

  /** The lines whose waiters can take from `partition`. */
  #linesFor(partition: string): WaitLine[] {
    const lines = [];
    const any = this.#lines.get(ANY);
    if (any !== undefined) lines.push(any);
    const only = partition === ANY ? undefined : this.#lines.get(partition);
    if (only !== undefined) lines.push(only);
    return lines;
  }
}

function oldestParked(lines: readonly WaitLine[]): Waiter | undefined {
  let oldest: Waiter | undefined;
  for (const { oldestParked: waiter } of lines) {
    if (waiter === undefined) continue;
    if (oldest === undefined || waiter.sequence < oldest.sequence) oldest = waiter;
  }
  return oldest;
}

function nextQuerying(lines: readonly WaitLine[]): Waiter | undefined {
  for (const line of lines) {
    const waiter = line.nextQuerying();
    if (waiter !== undefined) return waiter;
  }
  return undefined;
}
