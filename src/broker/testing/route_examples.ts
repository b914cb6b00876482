import type { ApiRequest } from "./api.ts";

/** The names in a request. */
export interface ExampleNames {
  readonly queue: string;
  readonly partition: string;
  readonly group: string;
  readonly transactionId: string;
  readonly text: string;
}

/** How a route is asked. */
export interface RouteExample {
  /** It serves the whole replica, whoever asks. */
  readonly isForAll?: true;
  /** A request that it takes, with these names; they need not exist. */
  readonly make: (names: ExampleNames) => ApiRequest;
  /** It needs a queue that exists, and is answered with 404 where there is none. */
  readonly needsQueue?: true;
  /** Which of the names are checked as such. */
  readonly names: readonly (keyof ExampleNames)[];
  /** The parameters of its query string. */
  readonly query?: readonly string[];
}

/** An id of nothing. */
export const UNKNOWN_ID = "dddddddd-0000-4000-8000-00000000000d";

const POP_QUERY = [
  "batch",
  "partitions",
  "autoAck",
  "timeout",
  "leaseSeconds",
  "consumerGroup",
  "subscriptionMode",
  "subscriptionFrom",
];

const get = (path: string) => (): ApiRequest => ({ path });
const enc = encodeURIComponent;
const query = (fields: Readonly<Record<string, string>>) => new URLSearchParams(fields).toString();

const ackOf = ({ transactionId, group, text }: ExampleNames) => ({
  transactionId,
  partitionId: UNKNOWN_ID,
  status: "completed",
  consumerGroup: group,
  leaseId: UNKNOWN_ID,
  error: text,
});

/** How each route is asked. */
export const ROUTE_EXAMPLES: Readonly<Record<string, RouteExample>> = {
  "GET /status": { isForAll: true, make: get("/status"), names: [] },
  "GET /health": { isForAll: true, make: get("/health"), names: [] },
  "GET /metrics": { isForAll: true, make: get("/metrics"), names: [] },
  "GET /internal/api/shared-state/stats": {
    isForAll: true,
    make: get("/internal/api/shared-state/stats"),
    names: [],
  },
  "GET /internal/api/inter-instance/stats": {
    isForAll: true,
    make: get("/internal/api/inter-instance/stats"),
    names: [],
  },
  "GET /api/v1/system/shared-state": {
    isForAll: true,
    make: get("/api/v1/system/shared-state"),
    names: [],
  },
  "GET /api/v1/system/maintenance": {
    isForAll: true,
    make: get("/api/v1/system/maintenance"),
    names: [],
  },
  "POST /api/v1/system/maintenance": {
    isForAll: true,
    make: () => ({ path: "/api/v1/system/maintenance", body: { enabled: false } }),
    names: [],
  },
  "POST /api/v1/system/maintenance/pop": {
    isForAll: true,
    make: () => ({ path: "/api/v1/system/maintenance/pop", body: { enabled: false } }),
    names: [],
  },
  "POST /api/v1/configure": {
    make: ({ queue, text }) => ({
      path: "/api/v1/configure",
      body: { queue, namespace: text, task: text, options: { leaseTime: 5, [text]: text } },
    }),
    names: ["queue"],
  },
  "POST /api/v1/push": {
    make: ({ queue, partition, transactionId, text }) => ({
      path: "/api/v1/push",
      body: { items: [{ queue, partition, transactionId, payload: { [text]: text } }] },
    }),
    names: ["queue", "partition", "transactionId"],
  },
  "GET /api/v1/pop/queue/:queue": {
    make: ({ queue, group }) => ({
      path: `/api/v1/pop/queue/${enc(queue)}?${query({ consumerGroup: group })}`,
    }),
    names: ["queue", "group"],
    query: POP_QUERY,
  },
  "GET /api/v1/pop/queue/:queue/partition/:partition": {
    make: ({ queue, partition, group }) => ({
      path: `/api/v1/pop/queue/${enc(queue)}/partition/${enc(partition)}?` +
        query({ consumerGroup: group }),
    }),
    names: ["queue", "partition", "group"],
    query: POP_QUERY,
  },
  "GET /api/v1/pop": {
    make: ({ group, text }) => ({
      path: `/api/v1/pop?${query({ namespace: text, task: text, consumerGroup: group })}`,
    }),
    names: ["group"],
    query: [...POP_QUERY, "namespace", "task"],
  },
  "POST /api/v1/ack": {
    make: (names) => ({ path: "/api/v1/ack", body: ackOf(names) }),
    names: ["transactionId", "group"],
  },
  "POST /api/v1/ack/batch": {
    make: (names) => ({
      path: "/api/v1/ack/batch",
      body: { consumerGroup: names.group, acknowledgments: [ackOf(names)] },
    }),
    names: ["transactionId", "group"],
  },
  "POST /api/v1/lease/:leaseId/extend": {
    make: () => ({ path: `/api/v1/lease/${UNKNOWN_ID}/extend`, body: { seconds: 60 } }),
    names: [],
  },
  "POST /api/v1/transaction": {
    make: (names) => ({
      path: "/api/v1/transaction",
      body: {
        operations: [
          {
            type: "push",
            items: [{
              queue: names.queue,
              partition: names.partition,
              transactionId: names.transactionId,
              payload: names.text,
            }],
          },
          { type: "ack", ...ackOf(names) },
        ],
        requiredLeases: [UNKNOWN_ID],
      },
    }),
    names: ["queue", "partition", "transactionId", "group"],
  },
  "DELETE /api/v1/resources/queues/:queue": {
    make: ({ queue }) => ({ method: "DELETE", path: `/api/v1/resources/queues/${enc(queue)}` }),
    names: ["queue"],
  },
  "GET /api/v1/dlq": {
    needsQueue: true,
    make: ({ queue, partition, group }) => ({
      path: `/api/v1/dlq?${query({ queue, partition, consumerGroup: group })}`,
    }),
    names: ["queue", "partition", "group"],
    query: ["consumerGroup", "partition", "from", "to", "limit", "offset"],
  },
  "POST /internal/api/notify": {
    make: ({ queue, partition }) => ({
      path: "/internal/api/notify",
      body: { queue, partition },
    }),
    names: ["queue", "partition"],
  },
};
