/**
 * Addresses: names to addresses, one spelling for each, and the address that stands for all.
 *
 * @module
 */

import { lookup } from "node:dns/promises";
import type { Abortable } from "../mesh/runtime.ts";
import { abortable } from "./abortable.ts";

const IPV4_MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** What the systems answer that have no IPv6. */
const NO_IPV6 = new Set(["EAFNOSUPPORT", "EADDRNOTAVAIL"]);

/** Names an IPv4 peer of a dual-stack socket (`::ffff:192.0.2.1`) as plain IPv4. */
export function plainIp(ip: string): string {
  return IPV4_MAPPED.exec(ip)?.[1] ?? ip;
}

/**
 * Asks the system's resolver for every address of a host, in the resolver's order. It has no way
 * to be stopped: after an abort its answer is ignored.
 */
export async function resolveHost(host: string, options: Abortable): Promise<readonly string[]> {
  options.signal.throwIfAborted();
  const found = await abortable(lookup(host, { all: true, verbatim: true }), options.signal);
  if (found.length === 0) throw new Error(`Cannot resolve ${host}: it has no address`);
  return found.map(({ address }) => plainIp(address));
}

/**
 * Binds every address of both families: `::`, which takes IPv4 as well, or `0.0.0.0` where the
 * system has no IPv6.
 */
export async function bindEveryAddress<T>(
  bind: (hostname: string) => T | Promise<T>,
): Promise<T> {
  try {
    return await bind("::");
  } catch (error) {
    if (!NO_IPV6.has((error as { code?: string }).code ?? "")) throw error;
    return await bind("0.0.0.0");
  }
}
