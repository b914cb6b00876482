/** A time in milliseconds as a person reads it: `0.4 ms`, `12.3 ms`, `743 ms`, `2.1 s`. */
export function formatMs(ms: number): string {
  if (ms < 99.95) return `${ms.toFixed(1)} ms`;
  return ms < 999.5 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/**
 * Lines up the cells of a table: the first column to the left, the others to the right, three spaces
 * between. Every row has as many cells as the first.
 *
 * @returns One line for each row, without trailing spaces.
 */
export function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length))
  );
  return rows.map((row) =>
    row.map((cell, column) => {
      const width = widths[column] ?? 0;
      return column === 0 ? cell.padEnd(width) : cell.padStart(width);
    }).join("   ").trimEnd()
  );
}
