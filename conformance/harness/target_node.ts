import { expectThat, HarnessError } from "./failure.ts";
import { type HttpReply, request } from "./http.ts";
import { describeEnd, NodeProcess, type NodeProcessOptions } from "./node_process.ts";
import type { Recorder } from "./transcript.ts";
import { pause } from "./until.ts";

/** The target could not be started, has ended, or does not answer. */
export class TargetError extends HarnessError {
  /** The error's name. */
  override readonly name = "TargetError";
  /** The last lines that the node wrote. */
  readonly logTail: readonly string[];

  /** With the end of its log. */
  constructor(message: string, logTail: readonly string[]) {
    super(message);
    this.logTail = logTail;
  }
}

/** What a {@linkcode TargetNode} is. */
export interface TargetNodeOptions {
  /** What the suite calls it: `A`, `B`, `C`. */
  readonly name: string;
  /** Where its HTTP API is, without a slash at the end. */
  readonly url: string;
  /** Where it answers 200 once it is ready. */
  readonly readyUrl: string;
  /** The host of its mesh port. */
  readonly meshHost: string;
  /** Its mesh port. */
  readonly meshPort: number;
  /** The secret that it was given; empty in open mode. */
  readonly secret: string;
  /** How to run it; undefined for a node that somebody else runs. */
  readonly process?: NodeProcessOptions | undefined;
  /** By what all deadlines are multiplied. */
  readonly scale: number;
  /** Takes what happens. */
  readonly record: Recorder;
}

/** Options of a request to a node. */
export interface NodeRequest {
  /** GET where it is left out. */
  readonly method?: string;
  /** A value that is sent as JSON. */
  readonly body?: unknown;
  /** More headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Gives up after this time, in milliseconds, before scaling; 15 000 where it is left out. */
  readonly timeoutMs?: number;
  /** Gives up at once. */
  readonly signal?: AbortSignal;
}

/** What a node's stats route answered, of which nothing has been checked. */
export type Stats = Readonly<Record<string, unknown>>;

/** The route of the mesh's numbers (section 8). */
export const STATS_ROUTE = "/internal/api/shared-state/stats";

/** How many lines of a log are shown. */
const TAIL_LINES = 15;

/** How long a node gets to become ready, in milliseconds, before scaling. */
const START_MS_MAX = 30_000;

/** How long a running node gets to answer that it is ready, in milliseconds, before scaling. */
const ANSWER_MS_MAX = 5000;

/** How long a request gets where it does not say, in milliseconds, before scaling. */
const REQUEST_MS_MAX = 15_000;

/** A node of the target. */
export class TargetNode {
  readonly #options: TargetNodeOptions;
  #process: NodeProcess | undefined;
  #lastStats = "";

  /** Starts nothing yet. */
  constructor(options: TargetNodeOptions) {
    this.#options = options;
  }

  /** What the suite calls it. */
  get name(): string {
    return this.#options.name;
  }

  /** Where its HTTP API is. */
  get url(): string {
    return this.#options.url;
  }

  /** The host of its mesh port. */
  get meshHost(): string {
    return this.#options.meshHost;
  }

  /** Its mesh port. */
  get meshPort(): number {
    return this.#options.meshPort;
  }

  /** The secret that it was given; empty in open mode. */
  get secret(): string {
    return this.#options.secret;
  }

  /** Whether it runs; one that somebody else runs is taken to. */
  get isRunning(): boolean {
    return this.#options.process === undefined ||
      (this.#process !== undefined && this.#process.end === undefined);
  }

  /**
   * Starts it and resolves when it is ready.
   *
   * @throws {TargetError} If it ends before that, or is not ready in 30 s.
   */
  async start(signal: AbortSignal): Promise<void> {
    const child = this.#spawn();
    const startMs = START_MS_MAX * this.#options.scale;
    const deadline = performance.now() + startMs;
    const signals = AbortSignal.any([signal, AbortSignal.timeout(startMs)]);
    for (;;) {
      if (child.end) {
        throw this.#error(`${describeEnd(child.end)} before it answered at ${this.readyUrl}`);
      }
      if (await this.#answersReady(signals)) {
        this.#record("is ready");
        return;
      }
      signal.throwIfAborted();
      if (performance.now() > deadline) {
        throw this.#error(`did not answer 200 at ${this.readyUrl} within ${startMs} ms`);
      }
      await pause(20, signal);
    }
  }

  /**
   * Starts it although it is expected to refuse: resolves to how it ended.
   *
   * @throws {TargetError} If it becomes ready, or does neither in 30 s.
   */
  async startExpectingEnd(signal: AbortSignal): Promise<{ code: number | null; log: string }> {
    const child = this.#spawn();
    const startMs = START_MS_MAX * this.#options.scale;
    const deadline = performance.now() + startMs;
    for (;;) {
      if (child.end) {
        this.#record(describeEnd(child.end));
        return { code: child.end.code, log: child.logTail(TAIL_LINES).join("\n") };
      }
      if (performance.now() > deadline || await this.#answersReady(signal)) {
        throw this.#error("started");
      }
      await pause(20, signal);
    }
  }

  /** Where it answers 200 once it is ready. */
  get readyUrl(): string {
    return this.#options.readyUrl;
  }

  /**
   * Resolves where it still does its part.
   *
   * @throws {TargetError} If it has ended, or does not answer that it is ready within 5 s.
   */
  async expectReady(signal: AbortSignal): Promise<void> {
    if (this.#process?.end) throw this.#error(describeEnd(this.#process.end));
    const answerMs = ANSWER_MS_MAX * this.#options.scale;
    const deadline = performance.now() + answerMs;
    const signals = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
    while (!await this.#answersReady(signals)) {
      signal.throwIfAborted();
      if (this.#process?.end) throw this.#error(describeEnd(this.#process.end));
      if (performance.now() > deadline) {
        throw this.#error(`does not answer 200 at ${this.readyUrl} within ${answerMs} ms`);
      }
      await pause(20, signal);
    }
  }

  /** Ends it at once, as a crash would. */
  async kill(): Promise<void> {
    this.#record("is killed");
    const child = this.#process;
    this.#process = undefined;
    await child?.kill();
  }

  /** Asks it to stop and waits until it has. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    await child?.stop();
  }

  /** The last lines that it wrote; none of a node that somebody else runs. */
  logTail(): string[] {
    return this.#process?.logTail(TAIL_LINES) ?? [];
  }

  /**
   * Makes a request to it.
   *
   * @param path Where, from its root on.
   * @throws {HarnessError} If there is no answer.
   */
  request(path: string, options: NodeRequest = {}): Promise<HttpReply> {
    return this.#request(path, options, this.#options.record);
  }

  /** What its stats route answers. Written down only where it differs from the last time. */
  async stats(signal?: AbortSignal): Promise<Stats> {
    const reply = await this.#request(STATS_ROUTE, signal ? { signal } : {}, undefined);
    if (reply.text !== this.#lastStats) {
      this.#lastStats = reply.text;
      this.#record(`GET ${STATS_ROUTE} ${reply.status} ${reply.text.slice(0, 600)}`);
    }
    const { status, json } = reply;
    expectThat(
      status === 200 && typeof json === "object" && json !== null && !Array.isArray(json),
      `GET ${STATS_ROUTE} to answer 200 with a JSON object`,
      `${status} ${reply.text}`,
    );
    return json as Stats;
  }

  #spawn(): NodeProcess {
    const options = this.#options.process;
    if (!options) throw new HarnessError(`${this.name} is not the suite's to start`);
    this.#record("starts");
    this.#process = new NodeProcess(options);
    return this.#process;
  }

  #request(
    path: string,
    { timeoutMs = REQUEST_MS_MAX, signal, ...options }: NodeRequest,
    record: Recorder | undefined,
  ): Promise<HttpReply> {
    return request(`${this.url}${path}`, {
      ...options,
      timeoutMs: timeoutMs * this.#options.scale,
      signal: signal ?? new AbortController().signal,
      record,
      label: this.name,
    });
  }

  async #answersReady(signal: AbortSignal): Promise<boolean> {
    try {
      const response = await fetch(this.readyUrl, { signal });
      await response.body?.cancel();
      return response.status === 200;
    } catch {
      // Not yet, whatever the reason is; the caller has a deadline.
      return false;
    }
  }

  #error(what: string): TargetError {
    return new TargetError(`node ${this.name} ${what}`, this.logTail());
  }

  #record(line: string): void {
    this.#options.record(`${this.name} ${line}`);
  }
}

/**
 * A number of a node's stats.
 *
 * @throws {Failure} If it is missing or no number.
 */
export function counter(stats: Stats, name: string): number {
  const value = stats[name];
  expectThat(typeof value === "number", `${name} in the stats to be a number`, stats);
  return value;
}
