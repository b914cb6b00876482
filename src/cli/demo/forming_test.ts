import assert from "node:assert/strict";
import { describeGap } from "./forming.ts";
import type { ReplicaStats } from "./replica_client.ts";

const MESHED: ReplicaStats = {
  enabled: true,
  peers: [{ port: 1, connected: true }, { port: 2, connected: true }],
  servers: [{ server_id: "C", alive: true }, { server_id: "B", alive: true }],
  servers_alive: 2,
  servers_dead: 0,
  waker: {
    parked: 0,
    first_queries: 0,
    replies_at_once: 0,
    replies_by_wake: 0,
    replies_by_poll: 0,
    empty_by_timeout: 0,
  },
};

Deno.test("a replica that is connected to all others and hears them has no gap", () => {
  assert.equal(describeGap("A", MESHED, ["B", "C"]), undefined);
});

Deno.test("a replica without a mesh has a gap", () => {
  const { waker } = MESHED;
  assert.equal(
    describeGap("A", { enabled: false, waker }, ["B", "C"]),
    "A is connected to 0 of 2 and hears nobody",
  );
});

Deno.test("a peer that is not connected, a dead server and a strange one are gaps", () => {
  const gaps: Partial<ReplicaStats>[] = [
    { peers: [{ port: 1, connected: true }, { port: 2, connected: false }] },
    { servers_alive: 1, servers_dead: 1 },
    { servers_dead: 1 },
    { servers: [{ server_id: "B", alive: true }, { server_id: "X", alive: true }] },
  ];
  for (const gap of gaps) assert.ok(describeGap("A", { ...MESHED, ...gap }, ["B", "C"]));
});
