import assert from "node:assert/strict";
import { ConfigCache } from "./config_cache.ts";
import { Payloads } from "./payloads.ts";
import { SealingTransactions } from "./sealing_transactions.ts";
import { createCipher } from "./spool/aes_gcm_cipher.ts";
import type { PushItem, TransactionRequest, TransactionResult } from "./store/store.ts";

const TENANT = "00000000-0000-0000-0000-000000000001";

const item = (queue: string): PushItem => ({
  queue,
  partition: "p",
  messageId: queue,
  transactionId: queue,
  payload: '"clear"',
});

const request = (...queues: string[]): TransactionRequest => ({
  items: queues.map(item),
  acks: [],
  requiredLeases: [],
});

const DONE: TransactionResult = { isCommitted: true, pushed: undefined, acked: undefined };

/** Transactions over a store that says of each of its queues whether it is encrypted. */
async function open(encrypted: Record<string, boolean>, { hasKey = true } = {}) {
  const payloads = new Payloads(hasKey ? await createCipher("ab".repeat(32)) : undefined);
  const seen: (readonly PushItem[])[] = [];
  let known = { ...encrypted };
  const configs = new ConfigCache({
    load: ({ queue }) =>
      Promise.resolve(
        queue in known ? { leaseSeconds: 60, encryptionEnabled: known[queue]! } : undefined,
      ),
  });
  const store = {
    transaction(_tenant: string, { items }: TransactionRequest): Promise<TransactionResult> {
      seen.push(items);
      const misjudged = items.filter((item) =>
        (item.encrypted ?? false) !== (encrypted[item.queue] ?? false)
      ).map(({ queue }) => queue);
      if (misjudged.length === 0) return Promise.resolve(DONE);
      known = { ...encrypted };
      const pushed = { outcomes: [], touched: [], misjudged };
      return Promise.resolve({ isCommitted: false, pushed, acked: undefined });
    },
  };
  const transactions = new SealingTransactions({ store, configs, payloads });
  return {
    transactions,
    payloads,
    seen,
    pretend(changes: Record<string, boolean>) {
      known = { ...known, ...changes };
    },
  };
}

Deno.test("what is pushed to an encrypted queue is sealed, and nothing else", async () => {
  const { transactions, payloads, seen } = await open({ secret: true, plain: false });
  const result = await transactions.transaction(TENANT, request("secret", "plain", "new"));
  assert.deepEqual(result, DONE);
  const [secret, plain, made] = seen[0]!;
  assert.equal(secret!.encrypted, true);
  assert.equal(await payloads.open(secret!.payload), '"clear"');
  assert.deepEqual([plain, made], [item("plain"), item("new")]);
});

Deno.test("a transaction that was misjudged is done again with what PostgreSQL says", async () => {
  const { transactions, seen, pretend } = await open({ secret: true, plain: false });
  pretend({ secret: false, plain: true });
  assert.deepEqual(await transactions.transaction(TENANT, request("secret", "plain")), DONE);
  assert.deepEqual(seen.map((items) => items.map(({ encrypted = false }) => encrypted)), [
    [false, true],
    [true, false],
  ]);
});

Deno.test("without a key a transaction that pushes to an encrypted queue is refused", async () => {
  const { transactions, seen } = await open({ secret: true, plain: false }, { hasKey: false });
  const { isCommitted, error } = await transactions.transaction(TENANT, request("plain", "secret"));
  assert.equal(isCommitted, false);
  assert.match(error!, /"secret" is encrypted/);
  assert.equal(seen.length, 0);
  assert.deepEqual(await transactions.transaction(TENANT, request("plain")), DONE);
});
