import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { HarnessError } from "./failure.ts";

/** Ports to choose from: below those that systems hand out for outgoing connections. */
const PORTS = { min: 10_240, max: 32_767 };

/** How many ports may be found taken. */
const ATTEMPTS_MAX = 100;

const given = new Set<number>();

/**
 * Finds a port of 127.0.0.1 that nobody uses and that this process has not given out yet. It is free
 * again when this resolves, so that another process could still take it; as it is chosen at random,
 * that is unlikely.
 *
 * @throws {HarnessError} If none of a hundred is free.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const port = randomInt(PORTS.min, PORTS.max + 1);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new HarnessError(`no free port among ${ATTEMPTS_MAX} from ${PORTS.min} to ${PORTS.max}`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    const listening = once(server, "listening");
    server.listen({ port, host: "127.0.0.1" });
    await listening;
  } catch {
    return false;
  }
  const closed = once(server, "close");
  server.close();
  await closed;
  return true;
}
