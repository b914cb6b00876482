import { Counter, Histogram, Registry } from "prom-client";
import type { Clock } from "../../mesh/runtime.ts";
import type { PushReceipt } from "../push_service.ts";
import type { AckOutcome } from "../store/store.ts";
import type { TransactionReceipt } from "../transaction_service.ts";
import { addCollected, type MetricSources } from "./collected.ts";
import { PREFIX } from "./prefix.ts";

/** What {@linkcode Metrics} are made of. */
export interface MetricsOptions {
  /** Time. */
  readonly clock: Clock;
  /** Where the figures are that others keep; they are asked whenever somebody looks. */
  readonly sources: MetricSources;
}

/** Says that what was begun has ended. */
export type Stop = () => void;

/** The upper bounds of the buckets of all latencies, in seconds. */
const BUCKETS_SECONDS = [
  0.0005,
  0.001,
  0.0025,
  0.005,
  0.01,
  0.025,
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2.5,
  5,
  10,
];

/**
 * What a replica tells Prometheus. No label ever holds what a client chose: how many series there are
 * depends on the configuration alone.
 */
export class Metrics {
  readonly #clock: Clock;
  readonly #registry = new Registry();
  readonly #pushed = this.#counter("pushed_messages_total", {
    help: "Messages that producers pushed, by what became of them.",
    labelNames: ["outcome"],
  });
  readonly #pops = this.#counter("pops_total", {
    help: "Pops that were answered, by what with: a batch, nothing, a refusal, an error.",
    labelNames: ["outcome"],
  });
  readonly #acks = this.#counter("acks_total", {
    help: "Acknowledgements, by what became of them.",
    labelNames: ["outcome"],
  });
  readonly #transactions = this.#counter("transactions_total", {
    help: "Transactions, by whether they were committed.",
    labelNames: ["outcome"],
  });
  readonly #responses = this.#counter("http_responses_total", {
    help: "Replies of the HTTP API, by the class of their status.",
    labelNames: ["code"],
  });
  readonly #pushSeconds = this.#histogram(
    "push_duration_seconds",
    "How long pushes took, from the parsed request to the outcome.",
  );
  readonly #popSeconds = this.#histogram(
    "pop_duration_seconds",
    "How long the queries of pops took; the time in which they were parked is not in it.",
  );
  readonly #wakeSeconds = this.#histogram(
    "wake_duration_seconds",
    "How long it took from the wake of a parked pop to its batch.",
  );

  /** Everything stands at zero. */
  constructor({ clock, sources }: MetricsOptions) {
    this.#clock = clock;
    addCollected(this.#registry, sources);
    for (const outcome of ["queued", "duplicate", "buffered", "failed"]) {
      this.#pushed.inc({ outcome }, 0);
    }
    for (const outcome of ["batch", "empty", "refused", "error"]) this.#pops.inc({ outcome }, 0);
    for (const outcome of ["applied", "noop", "dead_lettered", "refused"]) {
      this.#acks.inc({ outcome }, 0);
    }
    for (const outcome of ["committed", "rolled_back"]) this.#transactions.inc({ outcome }, 0);
    for (const code of ["2xx", "4xx", "5xx"]) this.#responses.inc({ code }, 0);
  }

  /** The type of {@linkcode Metrics.text | text}. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Everything in Prometheus's text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** A push ended with these receipts. */
  countPush(receipts: readonly Pick<PushReceipt, "status">[]): void {
    for (const { status } of receipts) this.#pushed.inc({ outcome: status });
  }

  /** Acks ended with these outcomes. */
  countAcks(outcomes: readonly AckOutcome[]): void {
    for (const outcome of outcomes) this.#acks.inc({ outcome: nameOf(outcome) });
  }

  /** A transaction ended; what it pushed and acknowledged counts like any other. */
  countTransaction({ isCommitted, outcomes }: TransactionReceipt): void {
    this.#transactions.inc({ outcome: isCommitted ? "committed" : "rolled_back" });
    if (!isCommitted) return;
    for (const { type, outcome } of outcomes) {
      if (outcome === undefined) continue;
      if (type === "push") this.countPush([outcome]);
      else this.countAcks([outcome]);
    }
  }

  /** The HTTP API replied to a request for `path`. */
  countResponse(path: string, status: number): void {
    if (path.startsWith("/api/v1/pop/") || path === "/api/v1/pop") {
      this.#pops.inc({ outcome: popOutcome(status) });
    }
    this.#responses.inc({ code: `${Math.trunc(status / 100)}xx` });
  }

  /** A push begins; it is timed until the end. */
  startPush(): Stop {
    return this.#start(this.#pushSeconds);
  }

  /** A query of a pop begins. */
  startPopQuery(): Stop {
    return this.#start(this.#popSeconds);
  }

  /** A parked pop was woken. It is timed only if it ends in a batch. */
  startWake(): Stop {
    return this.#start(this.#wakeSeconds);
  }

  #start(histogram: Histogram): Stop {
    const start = this.#clock.now();
    return () => histogram.observe((this.#clock.now() - start) / 1000);
  }

  #counter<Label extends string>(
    name: string,
    { help, labelNames }: { readonly help: string; readonly labelNames: Label[] },
  ): Counter<Label> {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.#registry] });
  }

  #histogram(name: string, help: string): Histogram {
    return new Histogram({
      name: PREFIX + name,
      help,
      buckets: BUCKETS_SECONDS,
      registers: [this.#registry],
    });
  }
}

function popOutcome(status: number): string {
  if (status === 204) return "empty";
  if (status < 300) return "batch";
  return status < 500 ? "refused" : "error";
}

function nameOf({ success, dlq, noop }: AckOutcome): string {
  if (!success) return "refused";
  if (noop) return "noop";
  return dlq ? "dead_lettered" : "applied";
}
