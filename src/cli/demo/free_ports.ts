import { randomInt } from "node:crypto";
import type { Listener, Network } from "../../mesh/runtime.ts";

/** Ports to choose from: below those that systems hand out for outgoing connections. */
const PORTS = { min: 10_240, max: 32_767 };

/** How many ports may be found taken. */
const TAKEN_MAX = 100;

/**
 * Finds ports that nobody uses, all of them different. They are free again when it resolves, so that
 * another process could still take one: it is unlikely, as they are chosen at random.
 */
export async function findFreePorts(network: Network, count: number): Promise<number[]> {
  const listeners: Listener[] = [];
  let taken = 0;
  try {
    while (listeners.length < count) {
      try {
        listeners.push(await network.listen({ port: randomInt(PORTS.min, PORTS.max + 1) }));
      } catch (error) {
        if (++taken > TAKEN_MAX) throw error;
      }
    }
    return listeners.map((listener) => listener.port);
  } finally {
    for (const listener of listeners) listener.close();
  }
}
