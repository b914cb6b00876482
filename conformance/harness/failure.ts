/** A requirement that did not hold: what was expected, and what was seen instead. */
export class Failure extends Error {
  /** The error's name. */
  override readonly name = "Failure";
  /** What should have been. */
  readonly expected: string;
  /** What was. */
  readonly seen: string;

  /** Made of two sentences. */
  constructor(expected: string, seen: string) {
    super(`expected ${expected}; saw ${seen}`);
    this.expected = expected;
    this.seen = seen;
  }
}

/** The target or the suite itself could not do its part: nothing is said about any requirement. */
export class HarnessError extends Error {
  /** The error's name. */
  override readonly name: string = "HarnessError";
}

/**
 * States that something must hold.
 *
 * @param holds Whether it does.
 * @param expected What should be, to be read after "expected".
 * @param seen What is, to be read after "saw"; a value is shown as JSON.
 * @throws {Failure} If it does not hold.
 */
export function expectThat(holds: boolean, expected: string, seen: unknown): asserts holds {
  if (!holds) throw new Failure(expected, shown(seen));
}

/**
 * States that a value must be a certain one, compared as JSON.
 *
 * @param what What the value is.
 * @throws {Failure} If it is another.
 */
export function expectEqual(what: string, seen: unknown, expected: unknown): void {
  if (JSON.stringify(seen) === JSON.stringify(expected)) return;
  throw new Failure(`${what} to be ${shown(expected)}`, shown(seen));
}

const SHOWN_MAX = 1000;

/** A value in one line for people. A text is shown as it is. */
export function shown(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? String(value);
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}... (${text.length} chars)`;
}
