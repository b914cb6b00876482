import assert from "node:assert/strict";
import { FRAME_TYPE } from "../protocol/frame.ts";
import { DEFAULT_TENANT } from "../protocol/tenant.ts";
import { TENANT_HEADER } from "./tenancy.ts";
import { Cluster } from "./testing/cluster.ts";
import { HandListener, HandPeer } from "./testing/hand_peer.ts";
import type { MemoryHttp } from "./testing/memory_http.ts";

const A = "aaaaaaaa-0000-4000-8000-00000000000a";
const B = "bbbbbbbb-0000-4000-8000-00000000000b";
const STRANGER = "cccccccc-0000-4000-8000-00000000000c";

/** What a frame can say of the tenant. */
const ABSENT: readonly object[] = [
  {},
  { tenant: "" },
  { tenant: null },
  { tenant: 1 },
  { tenant: "no tenant" },
  { tenant: `{${A}}` },
  { tenant: A.slice(1) },
];

/** A replica, its peer by hand, and a pop parked for each of these tenants. */
async function withParked(
  { tenancy, tenants }: { readonly tenancy: boolean; readonly tenants: readonly string[] },
  use: (peer: HandPeer, http: MemoryHttp) => Promise<void>,
): Promise<void> {
  await using cluster = new Cluster();
  const { replica, http } = cluster.make("b", ["x"], undefined, { tenancy });
  await cluster.run(replica.start());
  for (const tenant of tenants) {
    const headers = { [TENANT_HEADER]: tenant };
    http.call("/api/v1/pop/queue/q?wait=true&timeout=300000", { headers });
  }
  await cluster.pass(10);
  const peer = await HandPeer.dial(cluster, "b");
  await use(peer, http);
  peer.close();
}

/** How many pops have been woken since the start. */
async function woken(http: MemoryHttp): Promise<number> {
  return (await http.call("/internal/api/shared-state/stats")).body.waker.wake_queries;
}

function available(fields: object) {
  return {
    type: FRAME_TYPE.MESSAGE_AVAILABLE,
    payload: { queue: "q", partition: "p", ...fields },
  };
}

Deno.test("with tenancy a frame wakes the pops of the tenant that it names, and no others", async () => {
  await withParked({ tenancy: true, tenants: [A, B] }, async (peer, http) => {
    await peer.send(available({ tenant: A }));
    assert.equal(await woken(http), 1);
    await peer.send(available({ tenant: B.toUpperCase() }));
    assert.equal(await woken(http), 2);
    await peer.send(available({ tenant: STRANGER }), available({ tenant: DEFAULT_TENANT }));
    assert.equal(await woken(http), 2);
  });
});

for (const fields of ABSENT) {
  Deno.test(`with tenancy a frame with ${JSON.stringify(fields)} wakes the pops of every tenant`, async () => {
    await withParked({ tenancy: true, tenants: [A, B, ""] }, async (peer, http) => {
      await peer.send(available(fields));
      assert.equal(await woken(http), 3);
    });
  });
}

Deno.test("without tenancy a frame with another tenant wakes nobody, and one without any does", async () => {
  await withParked({ tenancy: false, tenants: [A] }, async (peer, http) => {
    await peer.send(available({ tenant: A }));
    assert.equal(await woken(http), 0);
    for (const [i, fields] of [...ABSENT, { tenant: DEFAULT_TENANT }].entries()) {
      await peer.send(available(fields));
      assert.equal(await woken(http), i + 1);
    }
  });
});

Deno.test("with tenancy a deleted queue takes the rings of its tenant, or of every one", async () => {
  await withParked({ tenancy: true, tenants: [A, B, ""] }, async (peer, http) => {
    const rings = async () =>
      Number(/^queen_mesh_hot_list_rings (\d+)$/m.exec((await http.call("/metrics")).text)?.[1]);
    const type = FRAME_TYPE.QUEUE_CONFIG_DELETE;
    assert.equal(await rings(), 3);
    await peer.send({ type, payload: { queue: "q", tenant: STRANGER } });
    assert.equal(await rings(), 3);
    await peer.send({ type, payload: { queue: "q", tenant: A } });
    assert.equal(await rings(), 2);
    await peer.send({ type, payload: { queue: "q" } });
    assert.equal(await rings(), 0);
  });
});

Deno.test("every frame about a queue names the tenant, the default one too", async () => {
  for (const [header, tenant] of [[A, A], ["", DEFAULT_TENANT]] as const) {
    await using cluster = new Cluster();
    const listener = await HandListener.bind(cluster, "x");
    const { replica, http } = cluster.make("b", ["x"], undefined, { tenancy: true });
    await cluster.run(replica.start());
    await cluster.pass(1000);
    const headers = { [TENANT_HEADER]: header };
    const ask = (method: string, path: string, body?: unknown) =>
      cluster.run(http.call(path, { method, headers, ...(body === undefined ? {} : { body }) }));
    await ask("POST", "/api/v1/configure", { queue: "q" });
    await ask("POST", "/api/v1/push", { items: [{ queue: "q", payload: 1 }] });
    await ask("POST", "/internal/api/notify", { queue: "q", partition: "p" });
    await ask("DELETE", "/api/v1/resources/queues/q");
    await cluster.pass(1000);
    for (
      const [type, count] of [
        [FRAME_TYPE.QUEUE_CONFIG_SET, 1],
        [FRAME_TYPE.MESSAGE_AVAILABLE, 2],
        [FRAME_TYPE.QUEUE_CONFIG_DELETE, 1],
      ] as const
    ) {
      const tenants = listener.payloads(type).map((payload) => payload["tenant"]);
      assert.deepEqual(tenants, Array.from({ length: count }, () => tenant), `type ${type}`);
    }
    const dirty = listener.dirtyItems() as { readonly tenant: string }[];
    assert(dirty.length > 0);
    for (const item of dirty) assert.equal(item.tenant, tenant);
    listener.close();
  }
});
