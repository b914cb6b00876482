import type { Timer } from "../mesh/runtime.ts";
import type { Parked } from "./parked_list.ts";
import type { WaitGroup } from "./wait_group.ts";
import type { WaitLine } from "./wait_line.ts";

/**
 * Why a waiter goes on. It was woken, or it is its turn to poll: it queries again. Its timeout is
 * over, its client left, or the replica stops: it is done.
 */
export type Release = "wake" | "poll" | "timeout" | "left" | "closed";

/** What a {@linkcode Waiter} is made of. */
export interface WaiterOptions {
  /** Its place among the waiters: who armed earlier is older. */
  readonly sequence: number;
  /** When it was armed, in milliseconds. */
  readonly armedAt: number;
  /** Numbers events, so that a wake can be told to be older or newer than a query. */
  readonly tick: () => number;
  /** Its group. */
  readonly group: WaitGroup;
  /** Its line in that group. */
  readonly line: WaitLine;
}

/**
 * One pop that waits. It is armed before its first query, so that a wake that comes between the
 * query and the parking is kept for it.
 *
 * It holds the wakes that were given to it until it is known what became of them. A query that began
 * after a wake and comes up empty has spent it: somebody else took what it announced. What is left
 * when the waiter is done goes to another waiter.
 */
export class Waiter implements Parked {
  /** Its place among the waiters. */
  readonly sequence: number;
  /** When it was armed, in milliseconds. */
  readonly armedAt: number;
  /** Its group. */
  readonly group: WaitGroup;
  /** Its line. */
  readonly line: WaitLine;
  /** The neighbour among those parked. */
  previous: this | undefined;
  /** The neighbour among those parked. */
  next: this | undefined;
  /** Ends its waiting; set by who armed it. */
  timeout: Timer | undefined;
  /** The wakes that it holds: for which partition, and when the newest one was given. */
  readonly wakes: Map<string, number> = new Map();
  readonly #tick: () => number;
  #began = 0;
  #resume: ((release: Release) => void) | undefined;
  #end: Release | undefined;
  #isNudged = false;
  #isDone = false;

  /** Arms it; it counts as querying until it parks. */
  constructor({ sequence, armedAt, tick, group, line }: WaiterOptions) {
    this.sequence = sequence;
    this.armedAt = armedAt;
    this.#tick = tick;
    this.group = group;
    this.line = line;
    line.arm(this);
    group.arm(this);
  }

  /** Whether it is parked: neither querying nor done. */
  get isParked(): boolean {
    return this.#resume !== undefined;
  }

  /** When its last query began. */
  get began(): number {
    return this.#began;
  }

  /** Says that a query begins: it covers every wake that was given until now. */
  begin(): void {
    this.#began = this.#tick();
    this.#isNudged = false;
  }

  /** Lets it query again, once the query that is under way has ended. Nobody has to know of it. */
  nudge(): void {
    if (this.isParked) this.release("wake");
    else this.#isNudged = true;
  }

  /** Says that the query took a batch of each of these partitions: the waiter is done. */
  found(...partitions: readonly string[]): void {
    if (this.#isDone) return;
    for (const partition of partitions) this.group.take(partition, this);
    this.line.endPoll(this, true);
    this.leave();
  }

  /**
   * Says that the query came up empty, and resolves as soon as there is a reason to go on: at once
   * where a wake was given since the query began.
   */
  empty(): Promise<Release> {
    if (!this.#isDone) this.line.endPoll(this, false);
    if (this.#end !== undefined) {
      this.group.spend(this);
      this.leave(this.#end);
      return Promise.resolve(this.#end);
    }
    this.group.spend(this);
    if (this.wakes.size > 0 || this.#isNudged) return Promise.resolve("wake");
    return new Promise((resolve) => {
      this.#resume = resolve;
      this.line.park(this);
    });
  }

  /** Gives it a wake for `partition`. */
  hold(partition: string): void {
    this.wakes.set(partition, this.#tick());
  }

  /** Lets it query again. It must be parked. */
  release(release: "wake" | "poll"): void {
    const resume = this.#resume;
    this.#resume = undefined;
    this.line.unpark(this);
    resume?.(release);
  }

  /**
   * Ends its waiting: at once where it is parked, else after its query, which may still find
   * something.
   */
  expire(end: "timeout" | "closed"): void {
    if (this.isParked) this.leave(end);
    else this.#end ??= end;
  }

  /** Takes it out at once, and passes on the wakes that it holds. Harmless where it is done. */
  leave(end: Release = "left"): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#end = end;
    this.timeout?.cancel();
    const resume = this.#resume;
    this.#resume = undefined;
    this.line.remove(this, { isParked: resume !== undefined });
    this.group.leave(this);
    resume?.(end);
  }
}
