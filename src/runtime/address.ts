/**
 * Addresses: names to addresses, one spelling for each, and the address that stands for all.
 *
 * @module
 */

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { Network } from "../mesh/runtime.ts";
import { abortable } from "./abortable.ts";

const IPV4_MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** What the systems answer that have no IPv6. */
const NO_IPV6 = new Set(["EAFNOSUPPORT", "EADDRNOTAVAIL"]);

/** Names an IPv4 peer of a dual-stack socket (`::ffff:192.0.2.1`) as plain IPv4. */
export function plainIp(ip: string): string {
  return IPV4_MAPPED.exec(ip)?.[1] ?? ip;
}

/** Asks a resolver for every address of a host. */
type LookUp = (host: string) => Promise<readonly { readonly address: string }[]>;

/**
 * Makes what resolves host names. The system's resolver has no way to be stopped: after an abort its
 * answer is ignored, and until it has come the next call for that host waits for it too. Else a name
 * service that hangs would gather look-ups for as long as somebody goes on to dial.
 *
 * @param lookUp The system's resolver.
 */
export function createResolve(lookUp: LookUp): Network["resolve"] {
  const underWay = new Map<string, ReturnType<LookUp>>();
  function join(host: string): ReturnType<LookUp> {
    const found = underWay.get(host) ?? lookUp(host).finally(() => underWay.delete(host));
    underWay.set(host, found);
    return found;
  }
  return async (host, { signal }) => {
    signal.throwIfAborted();
    const found = await abortable(join(host), signal);
    if (found.length === 0) throw new Error(`Cannot resolve ${host}: it has no address`);
    return found.map(({ address }) => plainIp(address));
  };
}

/** Resolves a host name to every address that it yields, in the order of the system's resolver. */
export const resolveHost: Network["resolve"] = createResolve((host) => {
  // A literal needs no look-up, which nothing could cut short.
  const family = isIP(host);
  if (family !== 0) return Promise.resolve([{ address: host, family }]);
  return lookup(host, { all: true, verbatim: true });
});

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
