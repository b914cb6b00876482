import assert from "node:assert/strict";
import { settle, VirtualClock } from "../../simulation/virtual_clock.ts";
import { ApiError } from "./api_error.ts";
import { BODIES_IN_FLIGHT, BODY_IDLE_MS_MAX, BodyReader } from "./body_reader.ts";

function bench({ bytesMax = 10 } = {}) {
  const clock = new VirtualClock();
  return { clock, bodies: new BodyReader({ clock, bytesMax }) };
}

function request(body: BodyInit | null, headers: Record<string, string> = {}): Request {
  return new Request("http://replica/", { method: "POST", body, headers });
}

/** A body that arrives as it is told to. */
function slowBody() {
  let controller: ReadableStreamDefaultController<Uint8Array>;
  const state = { isCancelled: false };
  const stream = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given;
    },
    cancel: () => {
      state.isCancelled = true;
    },
  });
  const encoder = new TextEncoder();
  return {
    state,
    request: request(stream),
    send: (text: string) => controller.enqueue(encoder.encode(text)),
    end: () => controller.close(),
    fail: () => controller.error(new Error("connection reset")),
  };
}

function refusedWith(status: number) {
  return (error: unknown) => error instanceof ApiError && error.status === status;
}

const same = (text: string) => text;

Deno.test("a body is read as text, however it arrives", async () => {
  const { bodies, clock } = bench();
  const body = slowBody();
  const reading = bodies.read(body.request, same);
  for (const part of ["a", "b"]) {
    body.send(part);
    await settle();
  }
  assert.equal(bodies.inFlightBytes, 2);
  body.end();
  assert.equal(await reading, "ab");
  assert.equal(bodies.inFlightBytes, 0);
  assert.equal(clock.pending, 0);
});

Deno.test("a character may be parted anywhere", async () => {
  const { bodies } = bench();
  const bytes = new TextEncoder().encode("ü€😀");
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
      controller.close();
    },
  });
  assert.equal(await bodies.read(request(stream), same), "ü€😀");
});

Deno.test("a request without a body has an empty one", async () => {
  assert.equal(await bench().bodies.read(request(null), same), "");
});

Deno.test("a body of the greatest size is taken and a larger one refused", async () => {
  const { bodies } = bench();
  assert.equal(await bodies.read(request("x".repeat(10)), same), "x".repeat(10));
  await assert.rejects(bodies.read(request("x".repeat(11)), same), refusedWith(413));
  assert.equal(bodies.inFlightBytes, 0);
});

Deno.test("a body that announces to be too large is refused unread", async () => {
  const { bodies } = bench();
  const announced = request("x", { "content-length": "11" });
  await assert.rejects(bodies.read(announced, same), refusedWith(413));
});

Deno.test("a body that grows too large is refused as it arrives", async () => {
  const { bodies } = bench();
  const body = slowBody();
  const reading = bodies.read(body.request, same);
  body.send("x".repeat(11));
  await assert.rejects(reading, refusedWith(413));
  assert(body.state.isCancelled);
  assert.equal(bodies.inFlightBytes, 0);
});

Deno.test("bytes that are no UTF-8 are refused, a cut character at the end too", async () => {
  const { bodies } = bench();
  for (const bytes of [[0xff], [0x61, 0xc3]]) {
    await assert.rejects(bodies.read(request(new Uint8Array(bytes)), same), refusedWith(400));
  }
});

Deno.test("bodies in flight are bounded together, and count until they were used", async () => {
  const { bodies } = bench();
  const held: (() => void)[] = [];
  const hold = () => new Promise<void>((resolve) => held.push(resolve));
  const using = Array.from(
    { length: BODIES_IN_FLIGHT },
    () => bodies.read(request("x".repeat(10)), hold),
  );
  await settle();
  await assert.rejects(bodies.read(request("x"), same), refusedWith(503));
  held.forEach((release) => release());
  await Promise.all(using);
  assert.equal(await bodies.read(request("x"), same), "x");
  assert.equal(bodies.inFlightBytes, 0);
});

Deno.test("a body that stops arriving is given up", async () => {
  const { bodies, clock } = bench();
  const body = slowBody();
  const reading = bodies.read(body.request, same);
  reading.catch(() => {});
  body.send("a");
  await clock.advance(BODY_IDLE_MS_MAX - 1);
  body.send("b");
  await clock.advance(BODY_IDLE_MS_MAX);
  await assert.rejects(reading, refusedWith(408));
  assert(body.state.isCancelled);
  assert.equal(clock.pending, 0);
});

Deno.test("a body that breaks off is refused", async () => {
  const { bodies, clock } = bench();
  const body = slowBody();
  const reading = bodies.read(body.request, same);
  body.fail();
  await assert.rejects(reading, refusedWith(400));
  assert.equal(clock.pending, 0);
});

Deno.test("closing gives up bodies that are arriving, and refuses those to come", async () => {
  const { bodies, clock } = bench();
  const body = slowBody();
  const reading = bodies.read(body.request, same);
  reading.catch(() => {});
  body.send("a");
  await settle();
  bodies.close();
  await assert.rejects(reading, refusedWith(503));
  await assert.rejects(bodies.read(request("x"), same), refusedWith(503));
  assert.equal(clock.pending, 0);
});
