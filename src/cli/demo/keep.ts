import type { DemoReplica } from "./replicas.ts";
import type { Stage } from "./stage.ts";

/** Says how to try each thing by hand on replicas that are left running. */
export function explainKept(
  { terminal, databaseUrl }: Stage,
  replicas: readonly [DemoReplica, DemoReplica, DemoReplica],
): void {
  const [a, b, c] = replicas;
  terminal.heading("Left running, until Ctrl-C");
  for (const { name, client, meshPort, process } of replicas) {
    terminal.line(`${name}   ${client.url}   mesh port ${meshPort}   process ${process.pid}`);
  }
  terminal.line(`PostgreSQL   ${databaseUrl}`);
  const tries: readonly (readonly [string, string])[] = [
    [
      `park a pop on ${b.name}, for up to a minute`,
      `curl '${b.client.url}/api/v1/pop/queue/orders?wait=true&timeout=60000'`,
    ],
    [
      `push on ${a.name}, which answers that pop at once`,
      `curl -d '{"items": [{"queue": "orders", "payload": {"n": 1}}]}' ${a.client.url}/api/v1/push`,
    ],
    [
      "acknowledge it, with the ids of the pop's reply",
      `curl -d '{"transactionId": "...", "partitionId": "...", "leaseId": "..."}' ` +
      `${b.client.url}/api/v1/ack`,
    ],
    [
      `let ${c.name} tell all that there is something to take`,
      `curl -d '{"queue": "orders"}' ${c.client.url}/internal/api/notify`,
    ],
    [
      "set a queue's lease time to a minute",
      `curl -d '{"queue": "orders", "options": {"leaseTime": 60}}' ` +
      `${a.client.url}/api/v1/configure`,
    ],
    [`see how the mesh stands`, `curl ${a.client.url}/internal/api/shared-state/stats`],
    [`kill ${c.name}, and look again`, `kill -KILL ${c.process.pid}`],
  ];
  for (const [what, command] of tries) {
    terminal.line();
    terminal.note(what);
    terminal.line(command);
  }
  terminal.line();
  terminal.note(
    "Parked pops poll every 5 s here; an unacknowledged message comes back after its lease.",
  );
}
