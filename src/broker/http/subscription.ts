import * as v from "valibot";
import type { SubscriptionStart } from "../store/store.ts";

/** A date, and a time of day that is of UTC unless it says otherwise. A `+` may have become a space. */
const TIMESTAMP =
  /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:([Zz])|([ +-])(\d\d):?(\d\d))?)?$/;

const RULE = "must be now or a timestamp like 2026-01-31T00:00:00Z";

/** `subscriptionMode` in a query string; left out where it is empty. */
export const subscriptionMode: v.GenericSchema<string | undefined, "new" | "all" | undefined> = v
  .pipe(
    v.optional(v.string(), ""),
    v.picklist(["", "new", "all"], "must be new or all"),
    v.transform((mode) => mode === "" ? undefined : mode),
  );

/** `subscriptionFrom` in a query string; left out where it is empty. */
export const subscriptionFrom: v.GenericSchema<string | undefined, SubscriptionStart | undefined> =
  v.pipe(
    v.optional(v.string(), ""),
    v.rawTransform(({ dataset: { value: text }, addIssue }) => {
      if (text === "") return undefined;
      if (text === "now") return "new";
      const at = toUtc(text);
      if (at === undefined) addIssue({ message: RULE });
      else return { at };
      return undefined;
    }),
  );

/** The moment as RFC 3339 in UTC, to the microsecond; undefined where there is no such moment. */
function toUtc(text: string): string | undefined {
  const match = TIMESTAMP.exec(text);
  if (match === null) return undefined;
  const [, date, minutes = "00:00", seconds = "00", fraction = "", , sign = "+", hour, minute] =
    match;
  const offset = hour === undefined ? "Z" : `${sign === "-" ? "-" : "+"}${hour}:${minute}`;
  const time = new Date(`${date}T${minutes}:${seconds}${offset}`);
  // A day that its month does not have would become one of the next month.
  const isReal = new Date(`${date}T00:00:00Z`).getTime();
  if (Number.isNaN(time.getTime()) || Number.isNaN(isReal)) return undefined;
  if (new Date(isReal).toISOString().slice(0, 10) !== date) return undefined;
  const whole = time.toISOString();
  // Years of PostgreSQL have four digits here too, which an offset can take away.
  if (!/^\d{4}-/.test(whole) || whole.startsWith("0000")) return undefined;
  return `${whole.slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, "0")}Z`;
}
