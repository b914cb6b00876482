import assert from "node:assert/strict";
import { useTestStores } from "../testing/test_store.ts";
import { DEFAULT_TENANT } from "../protocol/tenant.ts";
import { allRoutes, Api, type Tenant } from "./testing/api.ts";
import type { Reply } from "./testing/http_bench.ts";
import { ROUTE_EXAMPLES, UNKNOWN_ID } from "./testing/route_examples.ts";

const openStore = useTestStores();

const A = "aaaaaaaa-0000-4000-8000-00000000000a";
const B = "bbbbbbbb-0000-4000-8000-00000000000b";

/** Shows that a route works within its tenant. Both tenants and the default one begin with nothing. */
type Proof = (api: Api) => Promise<void>;

async function push(api: Api, tenant: Tenant, transactionId = "t"): Promise<Reply> {
  const items = [{ queue: "q", partition: "p", transactionId, payload: tenant ?? "default" }];
  const reply = await api.call("/api/v1/push", { items }, tenant);
  assert.equal(reply.status, 201);
  return reply;
}

/** Pops what `tenant` pushed, and what an ack of it says. */
async function claim(api: Api, tenant: Tenant) {
  const { status, body } = await api.call("/api/v1/pop/queue/q", undefined, tenant);
  assert.equal(status, 200);
  const { partitionId, leaseId } = body;
  return { transactionId: "t", partitionId, leaseId };
}

/** Whoever pops at `path` gets what is the own tenant's, and nothing else. */
function popsOwn(path: string): Proof {
  return async (api) => {
    for (const tenant of [A, B, undefined]) {
      await api.call("/api/v1/configure", { queue: "q", namespace: "n", task: "t" }, tenant);
    }
    await push(api, A);
    assert.equal((await api.call(path, undefined, B)).status, 204);
    assert.equal((await api.call(path)).status, 204);
    const { status, body } = await api.call(path, undefined, A);
    assert.equal(status, 200);
    assert.equal(body.messages[0].data, A);
  };
}

/** Acks of another tenant's message are answered as those of nobody's. */
function acksOwn(ack: (api: Api, ack: object, tenant: Tenant) => Promise<Reply>): Proof {
  return async (api) => {
    await push(api, A);
    await push(api, B);
    const claimed = await claim(api, A);
    const { leaseId: _, ...withoutLease } = claimed;
    const unknown = await ack(api, { ...claimed, partitionId: UNKNOWN_ID }, B);
    assert.equal(unknown.body[0].success, false);
    for (const tenant of [B, undefined]) {
      assert.deepEqual((await ack(api, claimed, tenant)).body, unknown.body);
      assert.equal((await ack(api, withoutLease, tenant)).body[0].success, false);
    }
    assert.equal((await ack(api, claimed, A)).body[0].success, true);
  };
}

async function extend(api: Api, leaseId: string, tenant: Tenant): Promise<Reply> {
  return await api.call(`/api/v1/lease/${leaseId}/extend`, { seconds: 60 }, tenant);
}

const PROOFS: Readonly<Record<string, Proof>> = {
  "POST /api/v1/configure": async (api) => {
    const configure = async (tenant: Tenant, options: object) =>
      (await api.call("/api/v1/configure", { queue: "q", options }, tenant)).body;
    const own = await configure(A, { leaseTime: 5 });
    for (const tenant of [B, undefined]) {
      const { queueId, options } = await configure(tenant, {});
      assert.notEqual(queueId, own.queueId);
      assert.equal(options.leaseTime, 300);
    }
    assert.equal((await configure(A, {})).options.leaseTime, 5);
  },
  "POST /api/v1/push": async (api) => {
    for (const tenant of [A, B, undefined]) {
      assert.equal((await push(api, tenant)).body[0].status, "queued");
    }
    assert.equal((await push(api, A)).body[0].status, "duplicate");
    // The default tenant is the one without a name.
    assert.equal((await push(api, DEFAULT_TENANT)).body[0].status, "duplicate");
    assert.equal((await push(api, A.toUpperCase())).body[0].status, "duplicate");
    // What is stored wakes the pops of its tenant alone.
    const waiting = api.call("/api/v1/pop/queue/r?wait=true&timeout=300000", undefined, B);
    await api.untilParked(1);
    const items = [{ queue: "r", payload: 1 }];
    await api.call("/api/v1/push", { items }, A);
    assert.equal((await api.waker())["wake_queries"], 0);
    await api.call("/api/v1/push", { items }, B);
    assert.equal((await waiting).status, 200);
  },
  "GET /api/v1/pop/queue/:queue": popsOwn("/api/v1/pop/queue/q"),
  "GET /api/v1/pop/queue/:queue/partition/:partition": popsOwn("/api/v1/pop/queue/q/partition/p"),
  "GET /api/v1/pop": async (api) => {
    const path = "/api/v1/pop?namespace=n&task=t";
    await popsOwn(path)(api);
    // A queue is made by its first pop: that of another tenant is not even looked for.
    await api.call("/api/v1/configure", { queue: "own", namespace: "n", task: "t" }, A);
    assert.equal((await api.call(path, undefined, B)).status, 204);
    assert.equal((await api.call("/api/v1/dlq?queue=own", undefined, B)).status, 404);
    assert.equal((await api.call("/api/v1/dlq?queue=own", undefined, A)).status, 200);
  },
  "POST /api/v1/ack": acksOwn((api, ack, tenant) => api.call("/api/v1/ack", ack, tenant)),
  "POST /api/v1/ack/batch": acksOwn((api, ack, tenant) =>
    api.call("/api/v1/ack/batch", { acknowledgments: [ack] }, tenant)
  ),
  "POST /api/v1/lease/:leaseId/extend": async (api) => {
    await push(api, A);
    const { leaseId } = await claim(api, A);
    const unknown = await extend(api, UNKNOWN_ID, B);
    for (const tenant of [B, undefined]) {
      const refused = await extend(api, leaseId, tenant);
      assert.equal(refused.status, unknown.status);
      assert.deepEqual({ ...refused.body, leaseId: UNKNOWN_ID }, unknown.body);
      assert.notEqual(refused.body.success, true);
    }
    assert.equal((await extend(api, leaseId, A)).body.success, true);
  },
  "POST /api/v1/transaction": async (api) => {
    await push(api, A);
    const claimed = await claim(api, A);
    const ask = async (tenant: Tenant, body: object) =>
      (await api.call("/api/v1/transaction", body, tenant)).body;
    const items = [{ queue: "q", partition: "other", transactionId: "u", payload: 1 }];
    const pushing = { type: "push", items };
    const acking = { type: "ack", ...claimed };
    for (const tenant of [B, undefined]) {
      assert.equal((await ask(tenant, { operations: [pushing, acking] })).success, false);
      const required = { operations: [pushing], requiredLeases: [claimed.leaseId] };
      assert.equal((await ask(tenant, required)).success, false);
      assert.equal((await api.call("/api/v1/pop/queue/q", undefined, tenant)).status, 204);
    }
    const whole = { operations: [pushing, acking], requiredLeases: [claimed.leaseId] };
    assert.equal((await ask(A, whole)).success, true);
    assert.equal((await api.call("/api/v1/pop/queue/q", undefined, B)).status, 204);
    assert.equal((await api.call("/api/v1/pop/queue/q", undefined, A)).body.partition, "other");
  },
  "DELETE /api/v1/resources/queues/:queue": async (api) => {
    const remove = async (tenant: Tenant) =>
      (await api.ask({ method: "DELETE", path: "/api/v1/resources/queues/q" }, tenant)).body;
    await push(api, A);
    for (const tenant of [B, undefined]) assert.equal((await remove(tenant)).existed, false);
    assert.equal((await remove(A)).existed, true);
    assert.equal((await api.call("/api/v1/pop/queue/q", undefined, A)).status, 204);
  },
  "GET /api/v1/dlq": async (api) => {
    await push(api, A);
    await push(api, B);
    const dead = { ...await claim(api, A), status: "dlq" };
    assert.equal((await api.call("/api/v1/ack", dead, A)).body[0].dlq, true);
    const total = async (tenant: Tenant) =>
      (await api.call("/api/v1/dlq?queue=q", undefined, tenant)).body.total;
    assert.deepEqual([await total(A), await total(B)], [1, 0]);
  },
  "POST /internal/api/notify": async (api) => {
    const waiting = [A, B, undefined].map((tenant) =>
      api.call("/api/v1/pop/queue/q?wait=true&timeout=300000", undefined, tenant)
    );
    await api.untilParked(3);
    assert.equal((await api.call("/internal/api/notify", { queue: "q" }, A)).status, 200);
    // A wake makes its query at once, so that it is counted before the notice is answered.
    assert.equal((await api.waker())["wake_queries"], 1);
    for (const tenant of [B, undefined]) await push(api, tenant);
    await api.untilParked(1);
    await push(api, A);
    const replies = await Promise.all(waiting);
    assert.deepEqual(replies.map(({ body }) => body.messages[0].data), [A, B, "default"]);
  },
};

Deno.test("every route is in the table of tenants", () => {
  const known = allRoutes().filter((route) => !ROUTE_EXAMPLES[route]?.isForAll);
  assert.deepEqual(known.sort(), Object.keys(PROOFS).sort());
});

for (const [route, prove] of Object.entries(PROOFS)) {
  Deno.test(`${route} works within its tenant`, async () => {
    await using api = await Api.start(await openStore(), { tenancy: true });
    await prove(api);
  });
}

const NAMES = { queue: "q", partition: "p", group: "g", transactionId: "t", text: "n" };

Deno.test("a malformed tenant is refused by every route that works within one", async () => {
  await using api = await Api.start(await openStore(), { tenancy: true });
  for (const [route, { isForAll, make }] of Object.entries(ROUTE_EXAMPLES)) {
    const { status, body } = await api.ask(make(NAMES), "not-a-tenant");
    if (isForAll) {
      assert.equal(status, 200, route);
    } else {
      assert.equal(status, 400, route);
      assert.deepEqual(body, { error: "invalid x-queen-tenant header (must be a UUID)" }, route);
    }
  }
});

Deno.test("without tenancy the tenant is ignored, whatever it is", async () => {
  await using api = await Api.start(await openStore());
  for (const [route, { make }] of Object.entries(ROUTE_EXAMPLES)) {
    const { status } = await api.ask(make(NAMES));
    assert.equal((await api.ask(make(NAMES), "not-a-tenant")).status, status, route);
    assert.notEqual(status, 400, route);
  }
  await push(api, A);
  assert.equal((await push(api, B)).body[0].status, "duplicate");
});
