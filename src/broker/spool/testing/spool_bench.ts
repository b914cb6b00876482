/**
 * Measures a spool on the real disk: appends a second by the count of callers, each of which awaits
 * one append before the next, then the drain, the scan at a start, and the memory that partitions
 * take.
 *
 * Run it with `deno run -A src/broker/spool/testing/spool_bench.ts [directory]`.
 *
 * @module
 */

import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { systemClock, systemRandom } from "../../../runtime/system.ts";
import { createCipher } from "../aes_gcm_cipher.ts";
import type { Cipher } from "../cipher.ts";
import { nodeFileSystem } from "../node_file_system.ts";
import { Spool } from "../spool.ts";
import type { SpoolRecord } from "../spool_record.ts";

const RUN_MS = 3000;
const CALLER_COUNTS = [1, 8, 64, 512];
const PARTITION_COUNT = 200_000;

const nobody = () => {};

function open(
  directory: string,
  { paused, cipher }: { paused: () => boolean; cipher?: Cipher },
): Promise<Spool> {
  return Spool.open({
    directory,
    fileSystem: nodeFileSystem,
    acquireLock: () => Promise.resolve({ release: () => Promise.resolve() }),
    sink: {
      position: () => Promise.resolve(0),
      store: ({ position }) => Promise.resolve({ position }),
    },
    paused,
    ...(cipher === undefined ? {} : { cipher }),
    clock: systemClock,
    wallClock: () => performance.timeOrigin + performance.now(),
    random: systemRandom,
    logger: { info: nobody, warn: nobody, error: nobody },
  });
}

function recordOf(n: number, partition: string): SpoolRecord {
  return {
    tenant: "00000000-0000-0000-0000-000000000001",
    queue: "orders",
    partition,
    messageId: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
    transactionId: `transaction-${n}`,
    payload: JSON.stringify({ n, text: "x".repeat(200) }),
    acceptedAt: n,
  };
}

async function measureAppends(directory: string, callers: number, cipher?: Cipher): Promise<void> {
  let isPaused = true;
  const spool = await open(directory, { paused: () => isPaused, ...(cipher && { cipher }) });
  let count = 0;
  const start = performance.now();
  await Promise.all(Array.from({ length: callers }, async (_, caller) => {
    while (performance.now() - start < RUN_MS) {
      await spool.append([recordOf(count++, `p${caller}`)]);
    }
  }));
  const seconds = (performance.now() - start) / 1000;
  isPaused = false;
  const drainStart = performance.now();
  spool.wake();
  await spool.drained();
  const drainSeconds = (performance.now() - drainStart) / 1000;
  await spool.close();
  console.log(
    `${callers} callers${cipher ? ", sealed" : ""}: ${Math.round(count / seconds)} appends/s, ` +
      `then drained at ${Math.round(count / drainSeconds)} records/s`,
  );
}

/** The heap, without garbage where the runtime lets a program collect it (`--expose-gc`). */
function heapBytes(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
}

async function measurePartitions(directory: string): Promise<void> {
  const spool = await open(directory, { paused: () => true });
  const before = heapBytes();
  for (let n = 0; n < PARTITION_COUNT; n += 1000) {
    await spool.append(
      Array.from({ length: 1000 }, (_, i) => recordOf(n + i, `${"partition-".repeat(30)}${n + i}`)),
    );
  }
  const { bytes } = spool.stats();
  const grownBytes = heapBytes() - before;
  await spool.close();
  const start = performance.now();
  await (await open(directory, { paused: () => true })).close();
  console.log(
    `${PARTITION_COUNT} partitions, ${Math.round(bytes / 1e6)} MB: heap grew by ` +
      `${Math.round(grownBytes / 1e6)} MB, a start scans them in ` +
      `${Math.round(performance.now() - start)} ms`,
  );
}

async function main(parent = "."): Promise<void> {
  const directory = await mkdtemp(join(parent, "spool-bench-"));
  try {
    const cipher = await createCipher("5a".repeat(32));
    for (const callers of CALLER_COUNTS) await measureAppends(directory, callers);
    await measureAppends(directory, 64, cipher);
    await measurePartitions(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

await main(process.argv[2]);
