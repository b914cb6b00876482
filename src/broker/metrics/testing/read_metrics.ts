import assert from "node:assert/strict";

/** One line of values. */
export interface Series {
  /** The metric, with the suffix that a histogram's lines have. */
  readonly name: string;
  /** Its labels. */
  readonly labels: Readonly<Record<string, string>>;
  /** Its value. */
  readonly value: number;
}

/** What {@linkcode readMetrics} finds. */
export interface ReadMetrics {
  /** The type of each metric. */
  readonly types: ReadonlyMap<string, string>;
  /** The description of each metric. */
  readonly help: ReadonlyMap<string, string>;
  /** All values. */
  readonly series: readonly Series[];
  /** The value of one series, which must be there. */
  value(name: string, labels?: Readonly<Record<string, string>>): number;
}

/** Reads Prometheus's text format, strictly. */
export function readMetrics(text: string): ReadMetrics {
  const types = new Map<string, string>();
  const help = new Map<string, string>();
  const series: Series[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment) {
      (comment[1] === "HELP" ? help : types).set(comment[2]!, comment[3]!);
      continue;
    }
    const sample = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    assert(sample, `not a line of Prometheus's format: ${line}`);
    const labels = (sample[2] ?? "").matchAll(/([a-z_]+)="([^"]*)"/g);
    series.push({
      name: sample[1]!,
      labels: Object.fromEntries([...labels].map(([, name, value]) => [name!, value!])),
      value: Number(sample[3]),
    });
  }
  return {
    types,
    help,
    series,
    value(name, labels = {}) {
      const found = series.find((each) =>
        each.name === name && Object.entries(labels).every(([key, at]) => each.labels[key] === at)
      );
      assert(found, `${name} ${JSON.stringify(labels)} is not told`);
      return found.value;
    },
  };
}
