import assert from "node:assert/strict";
import type { Connection } from "./runtime.ts";
import { BUFFERED_BYTES_MAX, type Guest, Guests } from "./guests.ts";

const MIB = 1_048_576;

/** Guests that have said HELLO, each under an id of its own, and the ids of those that were closed. */
function peers(guests: Guests, count: number) {
  const closed: number[] = [];
  const all: Guest[] = [];
  for (let number = 0; number < count; number++) {
    const guest = guests.admit({
      remote: { ip: "192.0.2.1", port: 1 + number },
      close: () => closed.push(number),
    } as Pick<Connection, "remote" | "close"> as Connection);
    guests.welcome(guest, `server ${number}`);
    all.push(guest);
  }
  return { all, closed };
}

Deno.test("the one with the largest buffer goes once all of them exceed what they may take", () => {
  const guests = new Guests();
  const { all, closed } = peers(guests, 10);
  assert.equal(BUFFERED_BYTES_MAX, 128 * MIB);
  for (const guest of all.slice(0, 9)) assert.equal(guests.buffer(guest, 14 * MIB), undefined);
  assert.equal(guests.buffer(all[3]!, 16 * MIB), undefined);
  assert.equal(guests.buffer(all[9]!, 1 * MIB), all[3]);
  assert.deepEqual(closed, [3]);
  assert.equal(guests.has(all[3]!), false);
});

Deno.test("what a guest took is free again once it has less, or has gone", () => {
  const guests = new Guests();
  const { all, closed } = peers(guests, 9);
  for (const guest of all.slice(0, 8)) assert.equal(guests.buffer(guest, 16 * MIB), undefined);
  guests.buffer(all[0]!, MIB);
  guests.close(all[1]!);
  assert.equal(guests.buffer(all[8]!, 31 * MIB), undefined);
  assert.deepEqual(closed, [1]);
  // Who has gone takes nothing any more.
  assert.equal(guests.buffer(all[1]!, 128 * MIB), undefined);
});
