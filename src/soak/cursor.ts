import type { AckOutcome } from "./history.ts";
import type { LeaseAck } from "./leases.ts";

/** What a group can be done with in a partition, by the places in the partition's order. */
export interface CursorState {
  /** The first place that it is not done with. */
  readonly next: number;
  /** Places of dead letters from there on, the lowest first. */
  readonly dead: readonly number[];
}

/** The places that follow in a state, as a batch of `count` messages. */
export function expectedPlaces({ next, dead }: CursorState, count: number): number[] {
  const places: number[] = [];
  for (let place = next; places.length < count; place++) {
    if (!dead.includes(place)) places.push(place);
  }
  return places;
}

/**
 * What an ack makes of a state. Where its outcome is open it may have done nothing, or all of it, and
 * then what failed was given back or dead-lettered.
 */
export function statesAfter(
  state: CursorState,
  ack: LeaseAck,
  placeOf: (transaction: string) => number,
): CursorState[] {
  const { answered } = ack;
  if (answered !== undefined) return [apply(state, ack, { placeOf, outcomes: answered.outcomes })];
  const dlq = (isOver: boolean) =>
    ack.items.map(({ status }) => ({
      success: true,
      dlq: status === "dlq" || (isOver && status === "failed"),
    }));
  const states = [
    state,
    ...[true, false].map((isOver) => apply(state, ack, { placeOf, outcomes: dlq(isOver) })),
  ];
  return distinct(states);
}

/** The states without repetitions. */
export function distinct(states: readonly CursorState[]): CursorState[] {
  return [...new Map(states.map((state) => [JSON.stringify(state), state])).values()];
}

function apply(
  { next, dead }: CursorState,
  { items }: LeaseAck,
  { placeOf, outcomes }: {
    readonly placeOf: (transaction: string) => number;
    readonly outcomes: readonly AckOutcome[];
  },
): CursorState {
  const open = items.map(({ transaction, status }, i) => ({
    place: placeOf(transaction),
    status,
    ...outcomes[i]!,
  })).filter(({ success, place }) => success && place >= next && !dead.includes(place));
  const given = Math.min(
    ...open.filter(({ status, dlq }) => status !== "completed" && !dlq).map(({ place }) => place),
  );
  const done = open.filter(({ status, place }) => status === "completed" && place < given);
  const allDead = [...dead, ...open.filter(({ dlq }) => dlq).map(({ place }) => place)];
  let after = Math.max(next, ...done.map(({ place }) => place + 1));
  while (allDead.includes(after)) after++;
  return { next: after, dead: allDead.filter((place) => place > after).sort((a, b) => a - b) };
}
