import assert from "node:assert/strict";
import { HttpBench } from "../testing/http_bench.ts";

const long = "x".repeat(513);

/** A request that is refused, and the field that the refusal names. */
const REFUSED: [string, string, string | Uint8Array | undefined, string][] = [
  ["/api/v1/push", "not JSON", "{", "body:"],
  ["/api/v1/push", "an empty body", "", "body:"],
  ["/api/v1/push", "no object", "[]", "body: must be an object"],
  ["/api/v1/push", "no items", "{}", "items: is required"],
  ["/api/v1/push", "items of the wrong type", '{"items":{}}', "items: must be an array"],
  ["/api/v1/push", "an item of the wrong type", '{"items":[1]}', "items[0]:"],
  ["/api/v1/push", "no queue", '{"items":[{"payload":1}]}', "items[0].queue: is required"],
  ["/api/v1/push", "no payload", '{"items":[{"queue":"q"}]}', "items[0].payload: is required"],
  [
    "/api/v1/push",
    "a long partition",
    `{"items":[{"queue":"q","payload":1},{"queue":"q","payload":1,"partition":"${long}"}]}`,
    "items[1].partition: must be at most 512 bytes",
  ],
  [
    "/api/v1/push",
    "a partition of the wrong type",
    '{"items":[{"queue":"q","payload":1,"partition":{}}]}',
    "items[0].partition: must be a string",
  ],
  [
    "/api/v1/push",
    "an empty partition",
    '{"items":[{"queue":"q","payload":1,"partition":""}]}',
    "items[0].partition: must not be empty",
  ],
  [
    "/api/v1/push",
    "a control character",
    String.raw`{"items":[{"queue":"q\u0000","payload":1}]}`,
    "items[0].queue: must hold no control characters",
  ],
  [
    "/api/v1/push",
    "a lone surrogate in a name",
    String.raw`{"items":[{"queue":"q","payload":1,"transactionId":"\ud800"}]}`,
    "items[0].transactionId: must hold no control characters",
  ],
  [
    "/api/v1/push",
    "bytes that are no UTF-8",
    new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]),
    "the body is not valid UTF-8",
  ],
  [
    "/api/v1/configure",
    "a bad option",
    '{"queue":"q","options":{"leaseTime":"1"}}',
    "options.leaseTime:",
  ],
  [
    "/api/v1/configure",
    "a lease of no time",
    '{"queue":"q","options":{"leaseTime":0}}',
    "options.leaseTime: must be a whole number from 1",
  ],
  [
    "/api/v1/configure",
    "half a retry",
    '{"queue":"q","options":{"retryLimit":0.5}}',
    "options.retryLimit:",
  ],
  [
    "/api/v1/configure",
    "encryption",
    '{"queue":"q","options":{"encryptionEnabled":true}}',
    "options.encryptionEnabled: encryption needs a key",
  ],
  [
    "/api/v1/configure",
    "a negative delay",
    '{"queue":"q","options":{"delayedProcessing":-1}}',
    "options.delayedProcessing: must be a whole number from 0",
  ],
  [
    "/api/v1/configure",
    "endless options",
    `{"queue":"q","options":{"mine":"${"x".repeat(65_536)}"}}`,
    "options: must be at most 65536 characters",
  ],
  ["/api/v1/configure", "an empty queue", '{"queue":""}', "queue: must not be empty"],
  ["/api/v1/configure", "options of the wrong type", '{"queue":"q","options":1}', "options:"],
  [
    "/api/v1/configure",
    "a namespace of the wrong type",
    '{"queue":"q","namespace":1}',
    "namespace:",
  ],
  ["/api/v1/pop/queue/q?batch=0", "no batch", undefined, "batch: must be a whole number from 1"],
  ["/api/v1/pop/queue/q?batch=10001", "a large batch", undefined, "batch:"],
  ["/api/v1/pop/queue/q?batch=1.5", "half a message", undefined, "batch:"],
  ["/api/v1/pop/queue/q?timeout=300001", "a long timeout", undefined, "timeout:"],
  ["/api/v1/pop/queue/q?wait=maybe", "an unclear wait", undefined, "wait: must be true or false"],
  ["/api/v1/pop/queue/q?leaseSeconds=0", "no lease", undefined, "leaseSeconds:"],
  ["/api/v1/pop/queue/q?consumerGroup=%00", "a bad consumer group", undefined, "consumerGroup:"],
  [
    `/api/v1/pop/queue/q?consumerGroup=${long}`,
    "a long consumer group",
    undefined,
    "consumerGroup:",
  ],
  ["/api/v1/pop/queue/q?partitions=0", "no partitions", undefined, "partitions:"],
  [
    "/api/v1/pop/queue/q?subscriptionMode=old",
    "a bad subscriptionMode",
    undefined,
    "subscriptionMode: must be new or all",
  ],
  ...["yesterday", "2026-02-30", "2026-01-01T25:00:00Z", "1767225600", "2026-01-01T00:00:00+99:00"]
    .map((text): [string, string, undefined, string] => [
      `/api/v1/pop/queue/q?subscriptionFrom=${text}`,
      `subscriptionFrom ${text}`,
      undefined,
      "subscriptionFrom: must be now or a timestamp",
    ]),
  ["/api/v1/pop", "neither a namespace nor a task", undefined, "namespace: is required"],
  ["/api/v1/pop?namespace=&task=", "empty filters", undefined, "namespace: is required"],
  ["/api/v1/pop?namespace=n&batch=0", "no batch by namespace", undefined, "batch:"],
  ["/api/v1/lease/l/extend", "no seconds", '{"seconds":0}', "seconds: must be a whole number"],
  ["/api/v1/lease/l/extend", "seconds of the wrong type", '{"seconds":"1"}', "seconds:"],
  ["/api/v1/lease/l/extend", "a lease body that is no object", "[]", "body:"],
  [`/api/v1/pop/queue/${long}`, "a long queue", undefined, "queue:"],
  ["/api/v1/pop/queue/q%00", "a control character", undefined, "queue:"],
  ["/api/v1/pop/queue/q%FF", "a path that is no UTF-8", undefined, "path:"],
  ["/api/v1/pop/queue/q/partition/%0A", "a newline", undefined, "partition:"],
  ["/api/v1/ack", "no transactionId", '{"partitionId":"p"}', "transactionId: is required"],
  ["/api/v1/ack", "no partitionId", '{"transactionId":"t"}', "partitionId: is required"],
  [
    "/api/v1/ack",
    "a bad consumer group",
    String.raw`{"transactionId":"t","partitionId":"p","consumerGroup":"\u0000"}`,
    "consumerGroup: must hold no control characters",
  ],
  [
    "/api/v1/ack",
    "a status of the wrong type",
    '{"transactionId":"t","partitionId":"p","status":1}',
    "status: must be a string",
  ],
  ["/api/v1/ack/batch", "no acknowledgments", "{}", "acknowledgments: is required"],
  [
    "/api/v1/ack/batch",
    "a consumer group of the wrong type",
    '{"consumerGroup":1,"acknowledgments":[]}',
    "consumerGroup: must be a string",
  ],
  [
    "/api/v1/ack/batch",
    "an ack of the wrong type",
    '{"acknowledgments":["t"]}',
    "acknowledgments[0]:",
  ],
  ["/internal/api/notify", "no queue", "{}", "queue: is required"],
  ["/internal/api/notify", "a bad partition", '{"queue":"q","partition":1}', "partition:"],
];

for (const [path, what, body, error] of REFUSED) {
  Deno.test(`${path.slice(0, 60)} refuses ${what}`, async () => {
    const bench = await HttpBench.started();
    const reply = await bench.call(path, body === undefined ? {} : { body });
    assert.equal(reply.status, 400);
    assert(reply.body.error.startsWith(error), reply.body.error);
    assert.deepEqual(bench.frames, []);
    assert.deepEqual(bench.logger.entries, []);
  });
}

Deno.test("names of 512 bytes are taken", async () => {
  const bench = await HttpBench.started();
  const name = "ü".repeat(256);
  const item = { queue: name, partition: name, payload: 1, transactionId: name };
  const taken = await bench.call("/api/v1/push", { body: { items: [item] } });
  assert.equal(taken.status, 201);
  const longer = { ...item, queue: `${name}x` };
  const refused = await bench.call("/api/v1/push", { body: { items: [longer] } });
  assert.equal(refused.status, 400);
});
