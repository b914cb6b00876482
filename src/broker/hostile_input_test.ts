import assert from "node:assert/strict";
import fc from "fast-check";
import { useTestStores } from "../testing/test_store.ts";
import { nameFault } from "./http/input.ts";
import { allRoutes, Api, type ApiRequest } from "./testing/api.ts";
import type { Reply } from "./testing/http_bench.ts";
import {
  type ExampleNames,
  ROUTE_EXAMPLES,
  type RouteExample,
  UNKNOWN_ID,
} from "./testing/route_examples.ts";

const openStore = useTestStores();

const NAMES: ExampleNames = {
  queue: "q",
  partition: "p",
  group: "g",
  transactionId: "t",
  text: "n",
};

const HOSTILE_NAMES: readonly string[] = [
  "",
  " ",
  "'",
  '"',
  "\\",
  "`$(x)`",
  "'; drop table queue; --",
  "a/b",
  "%2F",
  "%",
  "%zz",
  "a\nb",
  "a\r\nx-queen-tenant: x",
  "a\u0000b",
  "\u0000",
  "\u007f",
  "\u0085",
  "\u2028",
  "\ufeff",
  "😀",
  "\ud800",
  "\udc00\ud800",
  "x".repeat(512),
  "x".repeat(513),
  "😀".repeat(128),
  "😀".repeat(129),
  "x".repeat(20_000),
  "?a=b&c#d",
  "+",
  ";",
  ":queue",
  "*",
  "{}",
  "null",
  "__proto__",
  "constructor",
  "__QUEUE_MODE__",
  "Default",
];

/** JSON texts of values of every type, some of them of no use anywhere. */
const WRONG_VALUES: readonly string[] = [
  "null",
  "true",
  "0",
  "-1",
  "1.5",
  "1e400",
  "-0",
  "123456789012345678901234567890",
  "2147483648",
  '""',
  '"x"',
  '"\\u0000"',
  '"\\ud800"',
  "[]",
  "[null]",
  "[[]]",
  "{}",
  '{"a":{}}',
  '{"__proto__":1}',
];

const BAD_BODIES: readonly (string | Uint8Array)[] = [
  "",
  " ",
  "{",
  "}",
  "[",
  '{"queue":}',
  '{"queue":"q",}',
  "{'queue':'q'}",
  '{"queue":"a\nb"}',
  '{"queue":"\\x"}',
  "nul",
  "NaN",
  "01",
  "{} {}",
  "[".repeat(50_000),
  '{"a":'.repeat(15_000),
  new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
  new Uint8Array([0]),
];

const WRONG_BODIES: readonly string[] = ["null", "true", "1", '"x"', "[]", "{}", "[{}]", "[null]"];

const WRONG_PARAMETERS: readonly string[] = [
  "",
  "x",
  "-1",
  "0",
  "1.5",
  "1e9",
  "0x10",
  "99999999999999999999",
  "2147483647",
  "2147483648",
  "true",
  "TRUE",
  "null",
  "now",
  "new",
  "all",
  "infinity",
  "-infinity",
  "2026-13-45",
  "2026-02-30T00:00:00Z",
  "0000-00-00T00:00:00Z",
  "+275760-09-13T00:00:00.000Z",
  "-271821-04-20T00:00:00.000Z",
  "99999-01-01",
  "1767225600000",
  "'",
  "\u0000",
  "\ud800",
  "x".repeat(513),
  "😀",
];

const TEST_ROUTES: readonly (readonly [string, RouteExample])[] = Object.entries(ROUTE_EXAMPLES);
const BODY_ROUTES = TEST_ROUTES.filter(([, { make }]) => make(NAMES).body !== undefined);

/** A reply that is no refusal, but where the route needs a queue and there is none. */
function isTaken({ status }: Reply, { needsQueue }: RouteExample): boolean {
  return status < 300 || (needsQueue === true && status === 404);
}

/** A reply that is no failure of the replica, and that says what is wrong where something is. */
function assertClear({ status, body, text }: Reply, about: string): void {
  assert(status >= 200 && status < 500, `${about}: ${status} ${text.slice(0, 200)}`);
  if (status < 400) return;
  assert.deepEqual(Object.keys(body ?? {}), ["error"], `${about}: ${text.slice(0, 200)}`);
  assert(typeof body.error === "string" && body.error !== "", about);
}

/** Stands in a body for the value that is put there. */
const PLACE = "@place@";

/** Every field of a body by its name, with the text of the body in which it is `value`. */
function mutations(body: unknown, value: string): { field: string; text: string }[] {
  const found: { field: string; text: string }[] = [];
  const visit = (node: unknown, field: string, rebuild: (replaced: unknown) => unknown) => {
    if (field !== "") {
      const text = JSON.stringify(rebuild(PLACE)).replace(JSON.stringify(PLACE), () => value);
      found.push({ field, text });
    }
    if (typeof node !== "object" || node === null) return;
    for (const [key, child] of Object.entries(node)) {
      visit(child, Array.isArray(node) ? field : key, (replaced) =>
        rebuild(
          Array.isArray(node)
            ? node.map((old, i) => String(i) === key ? replaced : old)
            : { ...node, [key]: replaced },
        ));
    }
  };
  visit(body, "", (replaced) => replaced);
  return found;
}

const withBody = (request: ApiRequest, body: string | Uint8Array): ApiRequest => ({
  ...request,
  method: request.method ?? "POST",
  body,
});

Deno.test("every route is in the table of hostile input", () => {
  assert.deepEqual(allRoutes().sort(), Object.keys(ROUTE_EXAMPLES).sort());
});

Deno.test("every route takes names that nobody has heard of", async () => {
  await using api = await Api.start(await openStore());
  for (const [route, example] of TEST_ROUTES) {
    const reply = await api.ask(example.make(NAMES));
    assertClear(reply, route);
    assert(isTaken(reply, example), `${route}: ${reply.status} ${reply.text}`);
  }
});

Deno.test("every route with a body refuses what is no JSON, and says so", async () => {
  await using api = await Api.start(await openStore());
  for (const [route, { make }] of BODY_ROUTES) {
    for (const body of BAD_BODIES) {
      const about = `${route} ${JSON.stringify(body).slice(0, 50)}`;
      const reply = await api.ask(withBody(make(NAMES), body));
      assertClear(reply, about);
      // What can be left out as a whole may be.
      const isBlank = typeof body === "string" && body.trim() === "";
      if (!isBlank) assert.equal(reply.status, 400, `${about}: ${reply.status}`);
    }
  }
});

Deno.test("every route with a body refuses one of another type, and says so", async () => {
  await using api = await Api.start(await openStore());
  for (const [route, { make }] of BODY_ROUTES) {
    for (const body of WRONG_BODIES) {
      const reply = await api.ask(withBody(make(NAMES), body));
      assertClear(reply, `${route} ${body}`);
      if (body !== "{}") assert.equal(reply.status, 400, `${route} ${body}: ${reply.status}`);
    }
  }
});

for (const [route, { make }] of BODY_ROUTES) {
  Deno.test(`${route} takes or refuses any type in any field: where it refuses, it names it`, async () => {
    await using api = await Api.start(await openStore());
    const request = make(NAMES);
    for (const value of WRONG_VALUES) {
      for (const { field, text } of mutations(request.body, value)) {
        const reply = await api.ask(withBody(request, text));
        // A replica in maintenance needs a spool, which this one has not.
        if (reply.status === 503) assert.match(text, /"enabled":true/);
        else assertClear(reply, text);
        if (reply.status === 400) assert.match(reply.body.error, new RegExp(field), text);
      }
    }
  });
}

Deno.test("every parameter of every query may be anything: where it is refused, it is named", async () => {
  await using api = await Api.start(await openStore());
  for (const [route, { make, query = [] }] of TEST_ROUTES) {
    for (const parameter of query) {
      for (const value of WRONG_PARAMETERS) {
        const url = new URL(make(NAMES).path, "http://replica");
        url.searchParams.set(parameter, value);
        const reply = await api.ask({ path: url.pathname + url.search });
        const about = `${route} ${parameter}=${JSON.stringify(value).slice(0, 50)}`;
        assertClear(reply, about);
        if (reply.status === 400) assert.match(reply.body.error, new RegExp(parameter), about);
      }
    }
  }
});

Deno.test("every route with a body refuses one that is too large", async () => {
  await using api = await Api.start(await openStore());
  for (const [route, { make }] of BODY_ROUTES) {
    const reply = await api.ask(withBody(make(NAMES), " ".repeat(100_001)));
    assertClear(reply, route);
    assert.equal(reply.status, 413, route);
  }
});

Deno.test("every route refuses a name that cannot be one, and takes any other", async () => {
  await using api = await Api.start(await openStore());
  for (const [route, example] of TEST_ROUTES) {
    const { make, names } = example;
    for (const key of Object.keys(NAMES) as (keyof ExampleNames)[]) {
      for (const name of HOSTILE_NAMES) {
        const about = `${route} ${key}=${JSON.stringify(name).slice(0, 50)}`;
        let request: ApiRequest;
        try {
          request = make({ ...NAMES, [key]: name });
        } catch (error) {
          // A path cannot even say it.
          assert(error instanceof URIError, about);
          continue;
        }
        const reply = await api.ask(request);
        assertClear(reply, about);
        // An empty one may be left out, or make another path.
        if (!names.includes(key) || name === "") continue;
        const isName = nameFault(name.toWellFormed() === name ? name : "") === undefined;
        // A query string says U+FFFD in place of what it cannot say.
        if (isName) assert(isTaken(reply, example), `${about}: ${reply.status} ${reply.text}`);
        else if (name.toWellFormed() === name) assert.equal(reply.status, 400, about);
      }
    }
  }
});

Deno.test("a path that is no percent-encoded UTF-8 is refused", async () => {
  await using api = await Api.start(await openStore());
  for (const name of ["%", "%zz", "%80", "%ff%fe", "%c0%af", "%ed%a0%80"]) {
    for (const path of [`/api/v1/pop/queue/${name}`, `/api/v1/resources/queues/${name}`]) {
      const method = path.includes("resources") ? "DELETE" : "GET";
      const reply = await api.ask({ path, method });
      assertClear(reply, path);
      assert.equal(reply.status, 400, path);
    }
  }
});

Deno.test("ids that are none are unknown", async () => {
  await using api = await Api.start(await openStore());
  const ids = ["x", "", UNKNOWN_ID.slice(1), `{${UNKNOWN_ID}}`, "\u0000", "'", "x".repeat(600)];
  for (const id of ids) {
    const acks = [{ transactionId: "t", partitionId: id || "x", leaseId: id }];
    for (
      const request of [
        { path: "/api/v1/ack", body: acks[0] },
        { path: "/api/v1/ack/batch", body: { acknowledgments: acks } },
        { path: `/api/v1/lease/${encodeURIComponent(id)}/extend`, body: {} },
        { path: "/api/v1/transaction", body: { operations: [{ type: "ack", ...acks[0] }] } },
        { path: "/api/v1/transaction", body: { operations: [], requiredLeases: [id] } },
      ]
    ) {
      const reply = await api.ask(request);
      assertClear(reply, `${request.path} ${JSON.stringify(id)}`);
      if (reply.status === 200) assert.doesNotMatch(reply.text, /"success":true/, request.path);
    }
  }
});

Deno.test("a message is dead-lettered whatever the consumer says went wrong", async () => {
  await using api = await Api.start(await openStore());
  const errors = ["\u0000", "a\u0000b", "\ud800", "😀", "'", "x".repeat(90_000)];
  for (const [i, error] of errors.entries()) {
    const items = [{ queue: "q", transactionId: `t${i}`, payload: 1 }];
    await api.call("/api/v1/push", { items });
    const { body: { partitionId, leaseId } } = await api.call("/api/v1/pop/queue/q?batch=1");
    const ack = { transactionId: `t${i}`, partitionId, leaseId, status: "dlq", error };
    const reply = await api.call("/api/v1/ack", ack);
    assertClear(reply, JSON.stringify(error).slice(0, 50));
    assert.equal(reply.body[0].dlq, true);
  }
});

Deno.test("what is no route is refused", async () => {
  await using api = await Api.start(await openStore());
  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
    for (const path of ["/", "/api/v1/nothing", "/api/v1/pop/queue", "//", "/%00", "/../x"]) {
      const reply = await api.ask({ method, path });
      assertClear(reply, `${method} ${path}`);
      assert(reply.status >= 400, `${method} ${path}`);
    }
  }
});

/** Names of any characters, and among them many that are no names. */
const anyName = fc.oneof(
  fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 20 }),
  fc.string({ unit: "binary", minLength: 1, maxLength: 20 }),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
  fc.nat({ max: 0xffff }).map((code) => `a${String.fromCharCode(code)}b`),
  fc.constantFrom(...HOSTILE_NAMES.filter((name) => name !== "")),
);

/** No path can name these two: whoever reads it takes them for steps. */
const isStep = (name: string) => name === "." || name === "..";

Deno.test("what is pushed under any names comes back under the same ones, or is refused", async () => {
  await using api = await Api.start(await openStore());
  let run = 0;
  await fc.assert(
    fc.asyncProperty(anyName, anyName, anyName, async (base, partition, transactionId) => {
      // A queue of its own for each run, as far as there is room.
      const queue = base.length < 400 ? `${base}${run++}` : base;
      const items = [{ queue, partition, transactionId, payload: { [base]: partition } }];
      const pushed = await api.call("/api/v1/push", { items });
      const isFit = [queue, partition, transactionId].every((name) =>
        nameFault(name) === undefined
      );
      assert.equal(pushed.status, isFit ? 201 : 400, pushed.text);
      if (!isFit || isStep(queue) || isStep(partition)) return;
      if (pushed.body[0].status === "duplicate") return;
      const path = [queue, partition].map(encodeURIComponent).join("/partition/");
      const { status, body } = await api.call(`/api/v1/pop/queue/${path}?batch=1`);
      assert.equal(status, 200);
      assert.deepEqual(
        [body.queue, body.partition, body.messages[0].transactionId, body.messages[0].data],
        [queue, partition, transactionId, { [base]: partition }],
      );
      const { partitionId, leaseId } = body;
      const acked = await api.call("/api/v1/ack", { transactionId, partitionId, leaseId });
      assert.equal(acked.body[0].success, true);
    }),
    { numRuns: 100 },
  );
});
