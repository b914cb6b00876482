/**
 * A replica as a process, and a client of it.
 *
 * @module
 */

import { setTimeout as delay } from "node:timers/promises";
import { CommandProcess } from "./command.ts";

/** Nothing here should take that long. */
const DEADLINE_MS = 30_000;

/** A reply, read. */
export interface ServedReply {
  /** The status. */
  readonly status: number;
  /** The body; undefined where there is none. */
  // deno-lint-ignore no-explicit-any
  readonly body: any;
}

/** `serve` as a process of its own. */
export class Serving implements AsyncDisposable {
  /** The process. */
  readonly command: CommandProcess;
  readonly #port: number;

  private constructor(command: CommandProcess, port: number) {
    this.command = command;
    this.#port = port;
  }

  /** Starts it with these settings, and resolves once it serves. */
  static async start(
    settings: Readonly<Record<string, string>>,
    { args = [] }: { readonly args?: readonly string[] } = {},
  ): Promise<Serving> {
    const command = new CommandProcess(["serve", ...args], { PORT: "0", ...settings });
    try {
      const { port } = await command.logged("The replica serves");
      return new Serving(command, port as number);
    } catch (error) {
      await command[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Asks; posts where there is a body. */
  async call(path: string, body?: unknown): Promise<ServedReply> {
    const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, {
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  }

  /** Flips the maintenance flag. */
  async setMaintenance(enabled: boolean): Promise<void> {
    const { status } = await this.call("/api/v1/system/maintenance", { enabled });
    if (status !== 200) throw new Error(`the flip was answered ${status}`);
  }

  /** How many messages its spool holds. */
  async buffered(): Promise<number> {
    return (await this.call("/api/v1/system/maintenance")).body.bufferedMessages;
  }

  /** Ends it as a crash does. */
  async crash(): Promise<void> {
    this.command.kill("SIGKILL");
    await this.command.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.command[Symbol.asyncDispose]();
  }
}

/** Resolves once `condition` holds; rejects where that takes too long. */
export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  while (!await condition()) await delay(20, undefined, { signal });
}

/** Pushes to a partition of its own, one request after the other, until it is stopped. */
export class Producer {
  /** The transactionIds that were answered as stored, in order, by status. */
  readonly accepted: { readonly transactionId: string; readonly status: string }[] = [];
  /** How many requests were refused, or not answered at all. */
  refusedCount = 0;
  /** Where it pushes to: another process after a crash. */
  target: Serving;
  readonly #name: string;
  readonly #batch: number;
  #isStopped = false;
  #count = 0;
  readonly #running: Promise<void>;

  /** Begins. */
  constructor(name: string, { target, batch = 1 }: { target: Serving; batch?: number }) {
    this.#name = name;
    this.target = target;
    this.#batch = batch;
    this.#running = this.#run();
  }

  /** How many were answered with this status. */
  count(status: string): number {
    return this.accepted.filter((each) => each.status === status).length;
  }

  /** Pushes no more; resolves once nothing is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const items = Array.from({ length: this.#batch }, () => {
        const transactionId = `${this.#name}-${++this.#count}`;
        return { queue: "q", partition: this.#name, transactionId, payload: transactionId };
      });
      try {
        const { status, body } = await this.target.call("/api/v1/push", { items });
        if (status !== 201) throw new Error(`answered ${status}`);
        for (const { transaction_id: transactionId, status } of body) {
          this.accepted.push({ transactionId, status });
        }
      } catch {
        this.refusedCount++;
        await delay(20);
      }
    }
  }
}
