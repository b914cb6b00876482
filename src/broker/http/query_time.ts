import * as v from "valibot";

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:?\d\d)?)?$/i;

const MESSAGE = "must be a time such as 2026-01-31T12:00:00Z";

/**
 * A time in a query string: RFC 3339, in which the zone can be left out for UTC, and the time of day for
 * midnight. Left out where it is empty. The output is RFC 3339 in UTC, to the microsecond.
 */
export const queryTime: v.GenericSchema<string | undefined, string | undefined> = v.pipe(
  v.optional(v.string(), ""),
  v.rawTransform(({ dataset: { value: text }, addIssue }) => {
    if (text === "") return undefined;
    const time = toUtc(text);
    if (time === undefined) addIssue({ message: MESSAGE });
    return time;
  }),
);

function toUtc(text: string): string | undefined {
  // A plus that was not encoded arrives as a space.
  const parts = TIME.exec(text.replace(/ (?=\d\d:?\d\d$)/, "+")) ?? TIME.exec(text);
  if (parts === null) return undefined;
  const [, day, clock = "00:00", zone = "Z"] = parts;
  const [minutes, fraction = ""] = clock.split(".");
  const date = new Date(`${day}T${minutes}${zone.replace(/(\d\d)(\d\d)$/, "$1:$2").toUpperCase()}`);
  const isThere = !Number.isNaN(date.getTime()) && date.getUTCFullYear() > 0 &&
    !Number.isNaN(Date.parse(day!)) && new Date(day!).toISOString().startsWith(day!);
  if (!isThere) return undefined;
  return `${date.toISOString().slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, "0")}Z`;
}
