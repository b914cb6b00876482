/**
 * A process that works on a spool on the real disk. It says on its output, a line each, what it does:
 * `open`, `in use`, `appended <id>`, `stored <id>`.
 *
 * Arguments: the directory, and `append` (until it is killed) or `drain`.
 *
 * @module
 */

import process from "node:process";
import { systemClock, systemRandom } from "../../../runtime/system.ts";
import { SpoolInUseError } from "../errors.ts";
import { nodeFileSystem } from "../node_file_system.ts";
import { socketLock } from "../../../runtime/socket_lock.ts";
import { Spool } from "../spool.ts";

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function main([directory = "", task = ""]: readonly string[]): Promise<void> {
  const nobody = () => {};
  let spool: Spool;
  try {
    spool = await Spool.open({
      directory,
      fileSystem: nodeFileSystem,
      acquireLock: socketLock({ clock: systemClock, random: systemRandom }),
      sink: {
        position: () => Promise.resolve(0),
        store: ({ position, records }) => {
          for (const { messageId } of records) say(`stored ${messageId}`);
          return Promise.resolve({ position });
        },
      },
      paused: () => task !== "drain",
      segmentBytesMax: 2000,
      clock: systemClock,
      wallClock: () => performance.timeOrigin + performance.now(),
      random: systemRandom,
      logger: { info: nobody, warn: nobody, error: nobody },
    });
  } catch (error) {
    if (!(error instanceof SpoolInUseError)) throw error;
    say("in use");
    return;
  }
  say("open");
  if (task === "drain") await spool.drained();
  else await appendForEver(spool);
  await spool.close();
}

async function appendForEver(spool: Spool): Promise<void> {
  for (let n = 1;; n++) {
    const messageId = `${process.pid}-${n}`;
    await spool.append([{
      tenant: "00000000-0000-0000-0000-000000000001",
      queue: "orders",
      partition: "Default",
      messageId,
      transactionId: messageId,
      payload: `{"n":${n}}`,
      acceptedAt: n,
    }]);
    say(`appended ${messageId}`);
  }
}

await main(process.argv.slice(2));
