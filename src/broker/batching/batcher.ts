import type { Clock } from "../../mesh/runtime.ts";
import { StoreUnavailableError } from "../store/store.ts";

/** How much of a statement a call takes up. */
export interface CallSize {
  /** How many items it has. */
  readonly items: number;
  /** How much text they hold, in characters. */
  readonly characters: number;
}

/** How many statements there are at once, and how large they become. */
export interface BatchLimits {
  /** At most this many statements of a lane are under way. */
  readonly statementsMax: number;
  /** At most this many calls share a statement, so that what each costs adds up to a short time. */
  readonly callsMax: number;
  /** At most this many items share a statement; a call that has more goes alone. */
  readonly itemsMax: number;
  /** At most this much text shares a statement, in characters; a call that has more goes alone. */
  readonly charactersMax: number;
}

/** What a {@linkcode Batcher} is made of. */
export interface BatcherOptions<Call, Result> {
  /**
   * Runs one statement for several calls, which takes effect for all of them or for none. Resolves to
   * one result for each.
   */
  readonly run: (calls: readonly Call[]) => Promise<readonly Result[]>;
  /** Only calls of one lane share a statement. */
  readonly laneOf: (call: Call) => string;
  /** How large a call is. */
  readonly sizeOf: (call: Call) => CallSize;
  /** Calls that have a key in common share no statement; they have none where it is left out. */
  readonly keysOf?: (call: Call) => Iterable<string>;
  /** How large statements become. */
  readonly limits: BatchLimits;
  /** Time. */
  readonly clock: Pick<Clock, "now">;
}

/** How long a call waits at most to be tried itself where a statement before it got no answer, in ms. */
const PATIENCE_MS = 500;

/** A call that has not been answered. */
interface Pending<Call, Result> {
  readonly call: Call;
  readonly arrivedAt: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** The calls that may share statements with each other. */
interface Lane<Call, Result> {
  /** Those that wait, in the order in which they came. */
  readonly waiting: Pending<Call, Result>[];
  /** How many statements are under way. */
  underWay: number;
}

/**
 * Lets calls that arrive together share statements. While few statements of its lane are under way a
 * call goes at once, by itself. What arrives meanwhile waits and leaves together, in the order in which
 * it came, as soon as one of them has ended.
 *
 * Where a statement fails, its calls are tried in halves, down to each by itself, so that only those
 * fail that are at fault. Where PostgreSQL is away all of them fail: nothing is known of them then.
 */
export class Batcher<Call, Result> {
  readonly #options: BatcherOptions<Call, Result>;
  /** Only those that have something waiting or under way. */
  readonly #lanes = new Map<string, Lane<Call, Result>>();

  /** Makes one that has nothing to do. */
  constructor(options: BatcherOptions<Call, Result>) {
    this.#options = options;
  }

  /** Resolves or rejects as the call would by itself. */
  call(call: Call): Promise<Result> {
    const { laneOf, clock } = this.#options;
    const name = laneOf(call);
    let lane = this.#lanes.get(name);
    if (lane === undefined) this.#lanes.set(name, lane = { waiting: [], underWay: 0 });
    const { waiting } = lane;
    return new Promise((resolve, reject) => {
      waiting.push({ call, arrivedAt: clock.now(), resolve, reject });
      this.#startNext(name, lane);
    });
  }

  #startNext(name: string, lane: Lane<Call, Result>): void {
    const { waiting } = lane;
    if (waiting.length === 0) {
      if (lane.underWay === 0) this.#lanes.delete(name);
      return;
    }
    if (lane.underWay >= this.#options.limits.statementsMax) return;
    const batch = waiting.splice(0, this.#countFitting(waiting));
    lane.underWay++;
    this.#run(lane, batch).then(() => {
      lane.underWay--;
      this.#startNext(name, lane);
    });
  }

  /** How many calls from the first on can share a statement. */
  #countFitting(waiting: readonly Pending<Call, Result>[]): number {
    const { sizeOf, keysOf = () => [], limits } = this.#options;
    const keys = new Set<string>();
    let items = 0;
    let characters = 0;
    let count = 0;
    for (const { call } of waiting.slice(0, limits.callsMax)) {
      const size = sizeOf(call);
      items += size.items;
      characters += size.characters;
      const isTooLarge = items > limits.itemsMax || characters > limits.charactersMax;
      const own = new Set(keysOf(call));
      if (count > 0 && (isTooLarge || [...own].some((key) => keys.has(key)))) break;
      own.forEach((key) => keys.add(key));
      count++;
    }
    return count;
  }

  /** Answers the calls of a batch; never rejects. */
  async #run(lane: Lane<Call, Result>, batch: readonly Pending<Call, Result>[]): Promise<void> {
    try {
      const results = await this.#options.run(batch.map(({ call }) => call));
      batch.forEach(({ resolve }, i) => resolve(results[i]!));
    } catch (error) {
      if (error instanceof StoreUnavailableError) {
        for (const { reject } of batch) reject(error);
        this.#rejectWaiting(lane, error);
      } else if (batch.length === 1) {
        batch[0]!.reject(error);
      } else {
        const middle = batch.length >> 1;
        // One after the other: the calls keep their order.
        await this.#run(lane, batch.slice(0, middle));
        await this.#run(lane, batch.slice(middle));
      }
    }
  }

  /** What has waited for a statement that got no answer must not wait as long for its own. */
  #rejectWaiting({ waiting }: Lane<Call, Result>, error: StoreUnavailableError): void {
    const latest = this.#options.clock.now() - PATIENCE_MS;
    const count = waiting.findIndex(({ arrivedAt }) => arrivedAt > latest);
    for (const { reject } of waiting.splice(0, count < 0 ? waiting.length : count)) reject(error);
  }
}
