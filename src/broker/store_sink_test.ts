import assert from "node:assert/strict";
import type { OutgoingMessage } from "../protocol/messages.ts";
import { VirtualClock } from "../simulation/virtual_clock.ts";
import { ConfigCache, type QueueFacts } from "./config_cache.ts";
import { Payloads } from "./payloads.ts";
import { RefusedRecordsError } from "./spool/errors.ts";
import type { SpoolBatch } from "./spool/sink.ts";
import { fakeCipher } from "./spool/testing/fake_cipher.ts";
import {
  type SpooledBatch,
  type SpooledResult,
  StoreDataError,
  StoreUnavailableError,
} from "./store/store.ts";
import { StoreSink } from "./store_sink.ts";
import { Waker } from "./waker.ts";
import { Wakes } from "./wakes.ts";

const A = "aaaaaaaa-0000-0000-0000-000000000001";
const B = "bbbbbbbb-0000-0000-0000-000000000001";

/** A sink over a store that answers as it is told. */
class Bench {
  readonly batches: SpooledBatch[] = [];
  readonly frames: OutgoingMessage[] = [];
  answer: (batch: SpooledBatch) => SpooledResult | Error = ({ position, items }) => ({
    position,
    isMisjudged: false,
    touched: items.map(({ tenant, queue, partition }) => ({ tenant, queue, partition })),
  });
  isEncrypted = false;
  lookUps = 0;
  readonly sink: StoreSink;

  constructor({ hasKey = true } = {}) {
    const clock = new VirtualClock();
    const popWait = { initialMs: 1, threshold: 1, multiplier: 1, maxMs: 1 };
    this.sink = new StoreSink({
      store: {
        spoolPosition: () => Promise.resolve(7),
        storeSpooled: (batch) => {
          this.batches.push(batch);
          const answer = this.answer(batch);
          return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
        },
      },
      configs: new ConfigCache({
        load: () => {
          this.lookUps++;
          const facts: QueueFacts = { leaseSeconds: 1, encryptionEnabled: this.isEncrypted };
          return Promise.resolve(facts);
        },
      }),
      payloads: new Payloads(hasKey ? fakeCipher(3) : undefined),
      wakes: new Wakes({
        waker: new Waker({ clock, popWait }),
        broadcast: (message) => this.frames.push(message),
      }),
    });
  }
}

function batchOf(...tenants: string[]): SpoolBatch {
  return {
    spoolId: "s",
    after: 1,
    position: 1 + tenants.length,
    records: tenants.map((tenant, i) => ({
      tenant,
      queue: "q",
      partition: "p",
      messageId: `m${i}`,
      transactionId: `t${i}`,
      payload: `${i}`,
      acceptedAt: i,
    })),
  };
}

Deno.test("a batch is stored as it was spooled, and announced to each tenant", async () => {
  const bench = new Bench();
  assert.equal(await bench.sink.position("s"), 7);
  assert.deepEqual(await bench.sink.store(batchOf(A, B, A)), { position: 4 });
  const { records, ...rest } = batchOf(A, B, A);
  assert.deepEqual(bench.batches, [{ ...rest, items: records }]);
  assert.deepEqual(
    bench.frames.map((frame) => frame.type === "message_available" && frame.items[0]!.tenant),
    [A, B],
  );
});

Deno.test("another position than that of the batch is told, and announces nothing", async () => {
  const bench = new Bench();
  bench.answer = () => ({ position: 9, isMisjudged: false, touched: [] });
  assert.deepEqual(await bench.sink.store(batchOf(A)), { position: 9 });
  assert.deepEqual(bench.frames, []);
});

Deno.test("what PostgreSQL refuses is told from what it cannot take now", async () => {
  const bench = new Bench();
  bench.answer = () => new StoreDataError("invalid byte sequence");
  await assert.rejects(bench.sink.store(batchOf(A)), RefusedRecordsError);
  const away = new StoreUnavailableError("away");
  bench.answer = () => away;
  await assert.rejects(bench.sink.store(batchOf(A)), away);
});

Deno.test("a misjudged batch is sealed anew, after PostgreSQL was asked again", async () => {
  const bench = new Bench();
  const store = bench.answer;
  bench.answer = (batch) =>
    batch.items.every(({ encrypted }) => encrypted) ? store(batch) : {
      position: batch.after,
      isMisjudged: true,
      touched: [],
    };
  await bench.sink.store({ ...batchOf(), records: [] });
  bench.isEncrypted = false;
  const storing = bench.sink.store(batchOf(A, A));
  bench.isEncrypted = true;
  assert.deepEqual(await storing, { position: 3 });
  assert.equal(bench.batches.at(-1)!.items.every(({ payload }) => payload.includes(":")), true);
});

Deno.test("a queue that keeps changing is left for later", async () => {
  const bench = new Bench();
  bench.answer = ({ after }) => ({ position: after, isMisjudged: true, touched: [] });
  await assert.rejects(bench.sink.store(batchOf(A)), /keeps changing/);
  assert.equal(bench.lookUps, 5);
});

Deno.test("without a key nothing of an encrypted queue is stored, nor lost", async () => {
  const bench = new Bench({ hasKey: false });
  bench.isEncrypted = true;
  await assert.rejects(bench.sink.store(batchOf(A)), (error) => {
    assert(error instanceof Error && !(error instanceof RefusedRecordsError));
    assert.match(error.message, /QUEEN_ENCRYPTION_KEY/);
    return true;
  });
  assert.deepEqual(bench.batches, []);
});
