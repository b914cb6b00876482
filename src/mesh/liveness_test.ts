import assert from "node:assert/strict";
import { VirtualClock } from "../simulation/virtual_clock.ts";
import { Liveness } from "./liveness.ts";

function liveness(deadThresholdMs = 5000) {
  const clock = new VirtualClock();
  const log: string[] = [];
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}) =>
    log.push(`${message}: ${fields["server"]}`);
  const logger = { info: note, warn: note, error: note };
  return { clock, log, liveness: new Liveness({ clock, logger, deadThresholdMs }) };
}

const MINUTE_MS = 60_000;

Deno.test("a server that was never heard from is neither alive nor dead (LIV-2)", () => {
  assert.deepEqual(liveness().liveness.servers(), []);
});

Deno.test("a server is alive up to the threshold and dead beyond it (LIV-2)", async () => {
  const { clock, liveness: own } = liveness();
  own.heard("b");
  await clock.advance(5000);
  assert.deepEqual(own.servers(), [{ server_id: "b", alive: true, last_frame_ms_ago: 5000 }]);
  await clock.advance(1);
  assert.deepEqual(own.servers(), [{ server_id: "b", alive: false, last_frame_ms_ago: 5001 }]);
  own.close();
});

Deno.test("a dead server that is heard again is alive again, and both are logged (LIV-3)", async () => {
  const { clock, log, liveness: own } = liveness();
  own.heard("b");
  await clock.advance(6000);
  own.heard("b");
  await clock.advance(4000);
  own.heard("b");
  assert.deepEqual(log, ["server is alive: b", "server is dead: b", "server is alive again: b"]);
  assert.equal(own.servers()[0]?.alive, true);
  await clock.advance(5001);
  assert.equal(log.at(-1), "server is dead: b");
  own.close();
});

Deno.test("each server dies at its own time", async () => {
  const { clock, log, liveness: own } = liveness();
  own.heard("b");
  await clock.advance(3000);
  own.heard("c");
  await clock.advance(2001);
  assert.deepEqual(log.slice(2), ["server is dead: b"]);
  await clock.advance(3000);
  assert.deepEqual(log.slice(2), ["server is dead: b", "server is dead: c"]);
  own.close();
});

Deno.test("an id that has been dead for ten minutes is forgotten", async () => {
  const { clock, liveness: own } = liveness();
  own.heard("b");
  await clock.advance(5000 + 10 * MINUTE_MS - 1);
  assert.equal(own.servers().length, 1);
  await clock.advance(1);
  assert.equal(own.servers().length, 0);
  assert.equal(clock.pending, 0);
});

Deno.test("64 ids are kept, and the one unheard for longest goes first", async () => {
  const { clock, liveness: own } = liveness();
  for (let number = 0; number < 64; number++) {
    own.heard(`s${number}`);
    await clock.advance(1);
  }
  own.heard("s0");
  own.heard("new");
  const ids = own.servers().map((server) => server.server_id);
  assert.equal(ids.length, 64);
  assert.deepEqual([ids.includes("s0"), ids.includes("s1"), ids.includes("new")], [
    true,
    false,
    true,
  ]);
  own.close();
});

Deno.test("closing leaves no timer", () => {
  const { clock, liveness: own } = liveness();
  own.heard("b");
  own.close();
  assert.equal(clock.pending, 0);
});
