import { setTimeout as delay } from "node:timers/promises";
import type { Prng } from "../simulation/prng.ts";
import type { PopOptions, SoakClient, TakenBatch } from "./client.ts";
import type { AckCall, AckStatus } from "./history.ts";
import type { World } from "./world.ts";

/** Well below any lease, so that an answer never takes as long as one holds; in milliseconds. */
const WAIT_MS_MAX = 900;

/** How long a consumer pauses after a call that was not answered, in milliseconds. */
const RETRY_MS = 60;

/** How often an ack that is not answered is repeated. */
const ACK_ATTEMPTS = 4;

/** What a consumer does with a batch. */
const MANNERS = [
  ...Array<"complete">(60).fill("complete"),
  ...Array<"parts">(12).fill("parts"),
  ...Array<"fail">(8).fill("fail"),
  ...Array<"retry">(6).fill("retry"),
  ...Array<"dlq">(2).fill("dlq"),
  ...Array<"sleep">(2).fill("sleep"),
  ...Array<"extend">(4).fill("extend"),
  ...Array<"hang up">(6).fill("hang up"),
] as const;

/** What a {@linkcode Consumer} is made of. */
export interface ConsumerOptions {
  readonly group: string;
  /** Whether its group begins with the first message. */
  readonly mode: "all" | "new";
  readonly prng: Prng;
  readonly client: SoakClient;
  /** From then on it completes everything at once. */
  readonly isDraining: () => boolean;
  readonly isStopped: () => boolean;
}

/** Pops and acknowledges, now well, now badly, at whichever replica. */
export class Consumer {
  readonly #world: World;
  readonly #options: ConsumerOptions;

  constructor(world: World, options: ConsumerOptions) {
    this.#world = world;
    this.#options = options;
  }

  /** Goes on until it is told to stop. */
  async run(): Promise<void> {
    const { prng, isDraining, isStopped } = this.#options;
    const { signal } = this.#world;
    while (!isStopped() && !signal.aborted) {
      const manner = isDraining() ? "complete" : prng.pick(MANNERS);
      const batches = await this.#pop(manner === "hang up");
      if (batches === undefined) await delay(RETRY_MS);
      for (const batch of batches ?? []) await this.#handle(batch, manner);
    }
  }

  /** Resolves to undefined where the outcome is open, and to nothing where it came too late. */
  async #pop(hangsUp: boolean): Promise<readonly TakenBatch[] | undefined> {
    const { group, mode, prng, client } = this.#options;
    const { plan, replicas } = this.#world;
    const hangUp = hangsUp ? new AbortController() : undefined;
    const timer = hangUp && setTimeout(() => hangUp.abort(), prng.integer(1, WAIT_MS_MAX));
    const options: PopOptions = {
      parameters: {
        batch: String(prng.pick([1, 10, 50, 200])),
        partitions: String(prng.pick([1, 1, 2, 4])),
        subscriptionMode: mode,
      },
      partition: prng.chance(0.15) ? prng.pick(plan.partitions) : undefined,
      waitMs: prng.chance(0.8) ? prng.integer(50, WAIT_MS_MAX) : 0,
      ...(hangUp && { signal: hangUp.signal }),
    };
    const startedAt = performance.now();
    const batches = await client.pop(prng.pick(replicas), group, options);
    clearTimeout(timer);
    // Nobody can tell any more whether it was given before or after other batches.
    const isLate = performance.now() - startedAt > plan.leaseMs - 100;
    if (isLate) return [];
    if (batches?.length === 0 && options.waitMs === 0) await delay(RETRY_MS);
    return batches;
  }

  async #handle(batch: TakenBatch, manner: (typeof MANNERS)[number]): Promise<void> {
    const { prng, client } = this.#options;
    const { plan, replicas } = this.#world;
    const { messages } = batch;
    const at = prng.integer(0, messages.length - 1);
    const all = (statusAt: AckStatus) =>
      messages.map(({ transaction }, i) => ({
        transaction,
        status: i === at ? statusAt : "completed" as const,
      }));
    switch (manner) {
      case "complete":
      case "hang up":
        return await this.#ack(batch, all("completed"));
      case "parts":
        if (at > 0) await this.#ack(batch, all("completed").slice(0, at));
        return await this.#ack(batch, all("completed").slice(at));
      case "fail":
        return await this.#ack(batch, all("failed"));
      case "retry":
        return await this.#ack(batch, all("retry"));
      case "dlq":
        return await this.#ack(batch, all("dlq"));
      case "sleep":
        await delay(plan.leaseMs + prng.integer(0, 400));
        return await this.#ack(batch, all("completed"));
      case "extend":
        await client.extend(prng.pick(replicas), batch, plan.leaseMs / 1000 + 1);
        await delay(plan.leaseMs + prng.integer(0, 400));
        return await this.#ack(batch, all("completed"));
    }
  }

  async #ack(batch: TakenBatch, items: AckCall["items"]): Promise<void> {
    const { group, prng, client } = this.#options;
    const { replicas, signal } = this.#world;
    for (let attempt = 1; attempt <= ACK_ATTEMPTS && !signal.aborted; attempt++) {
      if (await client.ack(prng.pick(replicas), { group, batch, items })) return;
      await delay(RETRY_MS);
    }
  }
}
