/** A peer as configured: where to dial. */
export interface PeerAddress {
  /** A host name or an IP literal, without brackets. */
  readonly host: string;
  /** The peer's mesh port. */
  readonly port: number;
}

/** What {@linkcode parsePeers} made of a list. */
export interface ParsedPeers {
  /** The peers, in the order of the list. */
  readonly peers: readonly PeerAddress[];
  /** One line for each item that was not understood in full. */
  readonly warnings: readonly string[];
}

/**
 * Reads a list of peers (protocol, section 9): items separated by commas, each `host`, `host:port`,
 * `[v6]`, `[v6]:port` or a bare IPv6 literal, an `http://` or `https://` in front allowed. A tail
 * after the last colon that is no port from 1 to 65535 is dropped with a warning; then, as where no
 * port is given, `meshPort` is used.
 *
 * @example
 * ```ts
 * import { parsePeers } from "@queen/mesh";
 * import assert from "node:assert/strict";
 *
 * assert.deepEqual(parsePeers("a, [::1]:7000", 6633).peers, [
 *   { host: "a", port: 6633 },
 *   { host: "::1", port: 7000 },
 * ]);
 * ```
 */
export function parsePeers(list: string, meshPort: number): ParsedPeers {
  const peers: PeerAddress[] = [];
  const warnings: string[] = [];
  for (const item of list.split(",")) {
    const text = item.trim().replace(/^https?:\/\//i, "").trim();
    if (text === "") continue;
    const { host, tail } = splitPort(text);
    if (host === "" || /[[\]]/.test(host)) {
      warnings.push(`peer ${JSON.stringify(text)} names no host and is skipped`);
      continue;
    }
    const port = tail === undefined ? meshPort : parsePort(tail);
    if (port === undefined) {
      warnings.push(
        `peer ${JSON.stringify(text)}: ${JSON.stringify(tail)} is no port from 1 to 65535, ` +
          `the mesh port ${meshPort} is used`,
      );
    }
    peers.push({ host, port: port ?? meshPort });
  }
  return { peers, warnings };
}

function splitPort(text: string): { host: string; tail: string | undefined } {
  const bracketed = /^\[([^\]]*)\](.*)$/.exec(text);
  if (bracketed !== null) {
    const [, host = "", rest = ""] = bracketed;
    return { host: host.trim(), tail: rest === "" ? undefined : rest.replace(/^:/, "") };
  }
  const colon = text.lastIndexOf(":");
  if (colon === -1 || isBareIPv6(text)) return { host: text, tail: undefined };
  return { host: text.slice(0, colon).trim(), tail: text.slice(colon + 1).trim() };
}

/** Two colons or more and nothing that an IPv6 literal, its zone included, could not hold. */
function isBareIPv6(text: string): boolean {
  return /^[0-9a-f:]*:[0-9a-f:]*:[0-9a-f:.]*(%.+)?$/i.test(text);
}

function parsePort(tail: string): number | undefined {
  const port = /^\d{1,5}$/.test(tail) ? Number(tail) : 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}
