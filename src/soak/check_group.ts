import { type CursorState, distinct, expectedPlaces, statesAfter } from "./cursor.ts";
import type { Setting } from "./history.ts";
import type { Lease, LeaseAck } from "./leases.ts";
import type { PartitionOrder } from "./reference_order.ts";
import type { Rule, Violation } from "./violation.ts";

/** What {@linkcode checkGroup} finds. */
export interface GroupResult {
  readonly violations: readonly Violation[];
  /** What the group can be done with in the end; empty where it got nothing. */
  readonly states: readonly CursorState[];
  /** The place of its first message, or undefined where it got nothing. */
  readonly start: number | undefined;
}

/** Why a lease may have ended before its time, and from when on the next one could be given. */
interface Release {
  readonly fromMs: number;
  /** When its client knew of it; undefined where that stays open. */
  readonly knownMs: number | undefined;
}

/**
 * Follows the cursor of one group in one partition through all its leases, and compares each batch and
 * each ack with what the cursor allows.
 */
export function checkGroup(
  leases: readonly Lease[],
  { order, setting, startsAt }: {
    readonly order: PartitionOrder;
    readonly setting: Setting;
    /** 0, or undefined where the first batch says it. */
    readonly startsAt: number | undefined;
  },
): GroupResult {
  return new Follower(leases, order, setting).follow(startsAt);
}

class Follower {
  readonly #leases: readonly Lease[];
  readonly #order: PartitionOrder;
  readonly #setting: Setting;
  readonly #violations: Violation[] = [];

  constructor(leases: readonly Lease[], order: PartitionOrder, setting: Setting) {
    this.#leases = leases;
    this.#order = order;
    this.#setting = setting;
  }

  follow(startsAt: number | undefined): GroupResult {
    const start = startsAt ?? (this.#leases[0] && this.#placesOf(this.#leases[0])[0]);
    let states: readonly CursorState[] = start === undefined ? [] : [{ next: start, dead: [] }];
    this.#leases.forEach((lease, i) => {
      states = this.#deliver(lease, states);
      const { states: after, release } = this.#acknowledge(lease, states, this.#leases[i + 1]);
      states = after;
      const next = this.#leases[i + 1];
      if (next !== undefined) this.#checkAlone(lease, { release, next });
    });
    return { violations: this.#violations, states, start };
  }

  /** Returns the states in which the batch is what had to come. */
  #deliver(lease: Lease, states: readonly CursorState[]): readonly CursorState[] {
    const places = this.#placesOf(lease);
    const fitting = states.filter((state) =>
      expectedPlaces(state, places.length).every((place, i) => place === places[i])
    );
    if (fitting.length > 0) return fitting;
    const nextMin = Math.min(...states.map(({ next }) => next));
    const again = places.find((place) =>
      states.every(({ next, dead }) => place < next || dead.includes(place))
    );
    const seen =
      `${this.#name(lease)} brings the places ${places.join(", ")}, where the group is ` +
      `done with all below ${states.map(stateText).join(" or ")}`;
    if (again !== undefined) this.#violate("done is done", seen);
    if (again === undefined || places[0]! > nextMin || hasGap(places)) {
      this.#violate("from the first unfinished", seen);
    }
    // From here on as if it had been right.
    return [{ next: places[0]!, dead: [] }];
  }

  /** Returns what its acks make of the states, and whether they may have ended it. */
  #acknowledge(
    lease: Lease,
    before: readonly CursorState[],
    next: Lease | undefined,
  ): { readonly states: readonly CursorState[]; readonly release: Release | undefined } {
    const last = this.#placesOf(lease).at(-1)!;
    const placeOf = (transaction: string) => this.#order.get(transaction) ?? -1;
    let states = before;
    let release: Release | undefined;
    let isOpen = false;
    for (const ack of lease.acks) {
      this.#checkAck(lease, ack, { release, isOpen, next });
      // It comes too late to do anything; that it says so has just been checked.
      if (next !== undefined && ack.sentMs > next.answeredMs) continue;
      states = distinct(states.flatMap((state) => statesAfter(state, ack, placeOf)));
      isOpen ||= ack.answered === undefined;
      release ??= this.#releaseBy(ack, states.some((state) => state.next > last));
    }
    return { states, release };
  }

  #releaseBy(ack: LeaseAck, isDone: boolean): Release | undefined {
    const { answered, items, sentMs } = ack;
    const knownMs = answered?.atMs;
    const given = items.filter(({ status }, i) => {
      if (status !== "retry" && status !== "failed") return false;
      const outcome = answered?.outcomes[i];
      return outcome === undefined || (outcome.success && !outcome.dlq);
    });
    // A failure waits, but one whose outcome is open may have been the last try.
    const hasFailed = answered !== undefined && given.some(({ status }) => status === "failed");
    if (given.length > 0) {
      return { fromMs: sentMs + (hasFailed ? this.#setting.retryDelayMs : 0), knownMs };
    }
    return isDone ? { fromMs: sentMs, knownMs } : undefined;
  }

  /** Nothing is delivered while a batch is leased or waits to be retried. */
  #checkAlone(
    lease: Lease,
    { release, next }: { readonly release: Release | undefined; readonly next: Lease },
  ): void {
    const freeMs = Math.min(
      release?.fromMs ?? Infinity,
      release?.knownMs === undefined ? lease.endMsMin : Infinity,
    );
    if (next.answeredMs >= freeMs - this.#setting.toleranceMs) return;
    this.#violate(
      "one lease at a time",
      `${this.#name(next)} was answered ${ms(next.answeredMs)} although ${
        this.#name(lease)
      }, given ` +
        `between ${ms(lease.claimedMsMin)} and ${ms(lease.answeredMs)}, kept the partition until ` +
        ms(freeMs),
    );
  }

  #checkAck(lease: Lease, ack: LeaseAck, { release, isOpen, next }: {
    readonly release: Release | undefined;
    readonly isOpen: boolean;
    readonly next: Lease | undefined;
  }): void {
    const { answered, sentMs } = ack;
    if (answered === undefined) return;
    const { toleranceMs } = this.#setting;
    const name = `an ack of ${this.#name(lease)}, sent ${ms(sentMs)}`;
    const isLost = sentMs > lease.endMsMax + toleranceMs ||
      (next !== undefined && sentMs > next.answeredMs) || release?.knownMs !== undefined;
    if (isLost && answered.outcomes.some(({ success }) => success)) {
      const text = `${name}, succeeded although the lease had ended`;
      this.#violate("lost leases move nothing", text);
    }
    const isHeld = answered.atMs < lease.endMsMin - toleranceMs && release === undefined && !isOpen;
    const refused = answered.outcomes.findIndex(({ success }) => !success);
    if (isHeld && refused >= 0) {
      const text = `${name}, was refused for ${ack.items[refused]!.transaction} by ` +
        `${ms(answered.atMs)} although the lease held until ${ms(lease.endMsMin)}`;
      this.#violate("held leases count", text);
    }
  }

  #placesOf({ messages }: Lease): number[] {
    return messages.map(({ transaction }) => this.#order.get(transaction)!);
  }

  #name({ group, partition, leaseId }: Lease): string {
    return `the batch ${leaseId} of ${partition} for ${group}`;
  }

  #violate(rule: Rule, text: string): void {
    this.#violations.push({ rule, text });
  }
}

function hasGap(places: readonly number[]): boolean {
  return places.some((place, i) => i > 0 && place !== places[i - 1]! + 1);
}

function stateText({ next, dead }: CursorState): string {
  return dead.length === 0 ? String(next) : `${next} and with ${dead.join(", ")}`;
}

function ms(time: number): string {
  return `at ${time.toFixed(1)} ms`;
}
