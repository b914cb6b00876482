/**
 * The value that `percent` of all values do not exceed, by the nearest rank: always one of them.
 *
 * @param values Any number of them but none, in any order.
 * @param percent Above 0, at most 100, which gives the greatest.
 * @throws {RangeError} If there are no values, or `percent` is out of its bounds.
 */
export function percentile(values: readonly number[], percent: number): number {
  if (!(percent > 0 && percent <= 100)) {
    throw new RangeError(`percent must be above 0 and at most 100, not ${percent}`);
  }
  const sorted = [...values].sort((a, b) => a - b);
  const value = sorted[Math.ceil(sorted.length * percent / 100) - 1];
  if (value === undefined) throw new RangeError("there must be at least one value, not none");
  return value;
}
