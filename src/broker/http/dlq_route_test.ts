import assert from "node:assert/strict";
import { createCipher } from "../spool/aes_gcm_cipher.ts";
import type { DeadLetter } from "../store/store.ts";
import { HttpBench } from "../testing/http_bench.ts";

const LETTER: DeadLetter = {
  id: "m",
  transactionId: 't"',
  partitionId: "pid",
  partition: "p",
  consumerGroup: "g",
  payload: String.raw`{"a":12345678901234567890,"b":"\u0000"}`,
  encrypted: false,
  error: "no good",
  retryCount: 3,
  createdAt: "2026-01-01T00:00:00.000001Z",
  failedAt: "2026-01-02T00:00:00.000002Z",
};

async function withLetters(letters: readonly DeadLetter[], options = {}): Promise<HttpBench> {
  const bench = await HttpBench.started(options);
  await bench.call("/api/v1/configure", { body: { queue: "q" } });
  bench.store.letters = letters;
  return bench;
}

Deno.test("dead letters are listed with their payload's own text", async () => {
  const { error: _, ...silent } = LETTER;
  const bench = await withLetters([LETTER, { ...silent, error: undefined, payload: "null" }]);
  const { status, text, body } = await bench.call("/api/v1/dlq?queue=q");
  assert.equal(status, 200);
  assert.ok(text.includes(`"data":${LETTER.payload},`), text);
  const { payload, encrypted: _encrypted, error: errorMessage, ...rest } = LETTER;
  assert.deepEqual(body, {
    messages: [
      { ...rest, queue: "q", data: JSON.parse(payload), errorMessage },
      { ...rest, queue: "q", data: null, errorMessage: null },
    ],
    total: 2,
  });
});

Deno.test("dead letters are asked for as the query says", async () => {
  const bench = await withLetters([]);
  await bench.call("/api/v1/dlq?queue=q");
  await bench.call(
    "/api/v1/dlq?queue=q&consumerGroup=g&partition=p&from=2026-01-01&to=2026-01-02T00:00Z" +
      "&limit=5&offset=10",
  );
  await bench.call("/api/v1/dlq?queue=q&consumerGroup=&partition=&from=&to=&limit=&offset=");
  const plain = { queue: "q", limit: 100, offset: 0, bytesMax: 100_000 };
  assert.deepEqual(bench.store.deadLetterQueries, [
    plain,
    {
      queue: "q",
      consumerGroup: "g",
      partition: "p",
      from: "2026-01-01T00:00:00.000000Z",
      to: "2026-01-02T00:00:00.000000Z",
      limit: 5,
      offset: 10,
      bytesMax: 100_000,
    },
    plain,
  ]);
});

Deno.test("the dead letters of an unknown queue are 404", async () => {
  const bench = await withLetters([]);
  const { status, body } = await bench.call("/api/v1/dlq?queue=other");
  assert.deepEqual([status, body], [404, { error: 'queue: there is no queue "other"' }]);
});

Deno.test("an encrypted dead letter is opened, and 503 where that cannot be done", async () => {
  const cipher = await createCipher("ab".repeat(32));
  const bench = await withLetters([], { cipher });
  const payload = await bench.upkeep.payloads.seal('{"secret":1}');
  bench.store.letters = [{ ...LETTER, payload, encrypted: true }];
  const { body } = await bench.call("/api/v1/dlq?queue=q");
  assert.deepEqual(body.messages[0].data, { secret: 1 });
  const other = await withLetters([{ ...LETTER, payload, encrypted: true }]);
  const refused = await other.call("/api/v1/dlq?queue=q");
  assert.equal(refused.status, 503);
  assert.match(refused.body.error, /QUEEN_ENCRYPTION_KEY/);
});

for (
  const [query, error] of [
    ["", "queue: is required"],
    ["queue=", "queue: must not be empty"],
    ["queue=%00", "queue: must hold no control characters"],
    ["queue=q&partition=%0A", "partition: must hold no control characters"],
    ["queue=q&consumerGroup=%0A", "consumerGroup: must hold no control characters"],
    ["queue=q&from=yesterday", "from: must be a time"],
    ["queue=q&to=2026-02-30", "to: must be a time"],
    ["queue=q&limit=-1", "limit: must be a whole number"],
    ["queue=q&limit=10001", "limit: must be a whole number"],
    ["queue=q&offset=x", "offset: must be a whole number"],
  ] as const
) {
  Deno.test(`dead letters are refused for "${query}"`, async () => {
    const bench = await withLetters([]);
    const reply = await bench.call(`/api/v1/dlq?${query}`);
    assert.equal(reply.status, 400);
    assert.ok(reply.body.error.startsWith(error), reply.body.error);
  });
}
