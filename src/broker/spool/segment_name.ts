/**
 * What the name of a segment file says: its number, the id of its log, and the key.
 *
 * The name takes the place of a header inside the file, which a flipped bit could make unreadable.
 *
 * @module
 */

/** What a segment file's name says. */
export interface SegmentName {
  /** Orders all segments of a spool, of whichever log; higher for what was begun later. */
  readonly number: number;
  /** The id of the log, a lowercase UUID. */
  readonly logId: string;
  /** Names the key that seals the records; undefined where they are not sealed. */
  readonly keyId: string | undefined;
}

const PATTERN =
  /^(\d{10,15})-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-(plain|[0-9a-f]{16})\.segment$/;

/** The name of the file. */
export function formatSegmentName({ number, logId, keyId }: SegmentName): string {
  return `${String(number).padStart(10, "0")}-${logId}-${keyId ?? "plain"}.segment`;
}

/** What `name` says, or undefined where it is not that of a segment. */
export function parseSegmentName(name: string): SegmentName | undefined {
  const [, number, logId, keyId] = PATTERN.exec(name) ?? [];
  if (number === undefined || logId === undefined) return undefined;
  return { number: Number(number), logId, keyId: keyId === "plain" ? undefined : keyId };
}
