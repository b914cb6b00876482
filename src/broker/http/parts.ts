import type { Context, Hono } from "hono";
import type { Logger } from "../../mesh/runtime.ts";
import type { MeshStats } from "../../mesh/stats.ts";
import type { OutgoingMessage } from "../../protocol/messages.ts";
import type { AckService } from "../ack_service.ts";
import type { Delivery } from "../http_seam.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Modes } from "../modes.ts";
import type { PopService } from "../pop_service.ts";
import type { PushService } from "../push_service.ts";
import type { QueueDeleter } from "../queue_deleter.ts";
import type { SchemaGate } from "../schema_gate.ts";
import type { Store } from "../store/store.ts";
import type { TransactionService } from "../transaction_service.ts";
import type { Upkeep } from "../upkeep.ts";
import type { Waker } from "../waker.ts";
import type { Wakes } from "../wakes.ts";
import type { BodyReader } from "./body_reader.ts";

/** What a route is given beside the request. */
export interface RouteEnv {
  /** What comes with each request. */
  Bindings: {
    /** What becomes of the reply. */
    readonly delivery: Delivery;
    /** Whether requests name their tenant. */
    readonly tenancy: boolean;
  };
}

/** An app of routes. */
export type App = Hono<RouteEnv>;

/** A request with its surroundings. */
export type RouteContext = Context<RouteEnv>;

/** What the routes call. */
export interface HttpParts {
  /** PostgreSQL. */
  readonly store: Store;
  /** Whether PostgreSQL has been prepared. */
  readonly gate: Pick<SchemaGate, "requireOpen">;
  /** The flags, the cached configuration, and the spool. */
  readonly upkeep: Upkeep;
  /** Takes pushes. */
  readonly pushes: PushService;
  /** Answers pops. */
  readonly pops: PopService;
  /** Takes acks. */
  readonly acks: AckService;
  /** Runs transactions. */
  readonly transactions: TransactionService;
  /** Deletes queues. */
  readonly deleter: QueueDeleter;
  /** Says that there is something to take. */
  readonly wakes: Wakes;
  /** The pops that wait. */
  readonly waker: Waker;
  /** Whether requests name their tenant. */
  readonly tenancy: boolean;
  /** How the mesh stands. */
  readonly meshStats: () => MeshStats;
  /** Tells every peer; never waits. */
  readonly broadcast: (message: OutgoingMessage) => void;
  /** The modes that it is in. */
  readonly modes: () => Modes;
  /** What Prometheus is told. */
  readonly metrics: Metrics;
  /** Reads request bodies. */
  readonly bodies: BodyReader;
  /** The greatest reply to a pop of more than one message, in bytes. */
  readonly replyBytesMax: number;
  /** From where a group starts whose first pop does not say it; `new` where it is left out. */
  readonly defaultSubscriptionMode?: "new" | "all";
  /** Where errors of this program are reported. */
  readonly logger: Logger;
}
