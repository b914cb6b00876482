/**
 * What is sent, as JSON text: checked, and with every default named.
 *
 * @module
 */

import { BATCH_FRAMING_BYTES, UNIT_BYTES_MAX, utf8Bytes } from "./batch.ts";
import { checkNonEmpty, checkString, show } from "./check.ts";
import { FRAME_LENGTH_MAX } from "./frame.ts";
import { isObject, quote } from "./json.ts";
import type { OutgoingDirtyHint, OutgoingHint } from "./messages.ts";
import { DEFAULT_TENANT, parseTenant } from "./tenant.ts";

/**
 * Every item as JSON text, so that all are known to be sound before one is sent.
 *
 * @throws {TypeError} Where they are no array, or as `toText` does.
 * @throws {RangeError} As `toText` does.
 */
export function toTexts<Hint>(
  items: readonly Hint[],
  toText: (hint: Hint) => string,
): string[] {
  if (!Array.isArray(items)) throw new TypeError(`items must be an array, got ${show(items)}`);
  return items.map(toText);
}

/**
 * One available partition as JSON text: equal texts are equal hints.
 *
 * @throws {TypeError} Where a name is no string, the queue is empty, or the tenant is no UUID.
 * @throws {RangeError} Where the text does not fit into a frame.
 */
export function hintText(hint: OutgoingHint): string {
  return checkItem(`{${hintFields(hint)}}`, FRAME_LENGTH_MAX - 1);
}

/**
 * One dirty partition as JSON text.
 *
 * @throws {TypeError} As {@linkcode hintText} does, and where the group is no string.
 * @throws {RangeError} Where a batch of it alone does not fit into a frame.
 */
export function dirtyHintText(hint: OutgoingDirtyHint): string {
  const fields = hintFields(hint);
  const group = checkString("group", hint.group ?? "");
  const text = group === "" ? `{${fields}}` : `{${fields},"group":${quote(group)}}`;
  return checkItem(text, FRAME_LENGTH_MAX - 1 - BATCH_FRAMING_BYTES);
}

function hintFields(hint: OutgoingHint): string {
  if (!isObject(hint)) throw new TypeError(`An item must be an object, got ${show(hint)}`);
  const queue = quote(checkNonEmpty("queue", hint.queue));
  const partition = quote(checkString("partition", hint.partition ?? ""));
  return `"queue":${queue},"partition":${partition},"tenant":"${tenantToSend(hint.tenant)}"`;
}

/** A queue whose configuration has changed, as JSON text. */
export function configText(
  { queue, tenant }: { queue: string; tenant?: string | undefined },
): string {
  return `{"queue":${quote(checkString("queue", queue))},"tenant":"${tenantToSend(tenant)}"}`;
}

/** A mode that is switched, as JSON text. */
export function modeText({ enabled }: { enabled: boolean }): string {
  if (typeof enabled !== "boolean") {
    throw new TypeError(`enabled must be a boolean, got ${show(enabled)}`);
  }
  return `{"enabled":${enabled}}`;
}

/** A sender's id as JSON text. */
export function heartbeatText(serverId: string): string {
  return `{"server_id":${quote(checkNonEmpty("serverId", serverId))}}`;
}

function tenantToSend(tenant: string | undefined): string {
  if (tenant === undefined) return DEFAULT_TENANT;
  const parsed = parseTenant(tenant);
  if (parsed === undefined) {
    throw new TypeError(`tenant must be an 8-4-4-4-12 hex UUID, got ${show(tenant)}`);
  }
  return parsed;
}

/** Refuses an item for which no frame is long enough. */
function checkItem(text: string, bytesMax: number): string {
  // Counting is for the few that may be too long.
  if (text.length * UNIT_BYTES_MAX <= bytesMax) return text;
  const bytes = utf8Bytes(text);
  if (bytes > bytesMax) {
    throw new RangeError(
      `An item must have at most ${bytesMax} bytes as JSON, got ${bytes}: shorten its names`,
    );
  }
  return text;
}
