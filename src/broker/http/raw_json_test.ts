import assert from "node:assert/strict";
import fc from "fast-check";
import { RawJson, readJson, type Shape } from "./raw_json.ts";

const PUSH: Shape = {
  members: {
    items: {
      countMax: 1000,
      elements: { members: { queue: "scalar", partition: "scalar", payload: "raw" } },
    },
  },
};

/** Reads the payloads of a push as they stand in the text. */
function payloads(text: string): string[] {
  const { items } = readJson(text, PUSH) as { items: { payload: RawJson }[] };
  return items.map(({ payload }) => payload.text);
}

Deno.test("a payload is the producer's own text to the byte", () => {
  const text = String.raw`{ "items" : [
    {"queue":"q","payload" :  12345678901234567890.10  },
    {"payload":{"b":1,"a":2,"b":3, "\u0041":"\ud800\u0000\/"},"queue":"q"},
    {"queue":"q", "payload":"é ]}\"\\" }
  ] }`;
  assert.deepEqual(payloads(text), [
    "12345678901234567890.10",
    String.raw`{"b":1,"a":2,"b":3, "\u0041":"\ud800\u0000\/"}`,
    String.raw`"é ]}\"\\"`,
  ]);
});

Deno.test("the last of two equal keys counts, however it is written", () => {
  assert.deepEqual(
    payloads(String.raw`{"items":[],"it\u0065ms":[{"payload":1,"p\u0061yload":[2]}]}`),
    ["[2]"],
  );
});

Deno.test("only what the shape names becomes a value", () => {
  const shape: Shape = { members: { a: "scalar", b: "scalar", c: "raw", d: { members: {} } } };
  const text =
    '{"__proto__":{"x":1},"constructor":1,"a":{"deep":[1]},"b":[1],"c":[{"x":1}],"d":[2]}';
  assert.deepEqual(readJson(text, shape), {
    a: {},
    b: [],
    c: new RawJson('[{"x":1}]'),
    d: [],
  });
});

Deno.test("an array longer than its shape allows is refused as it is read", () => {
  const shape: Shape = { countMax: 2, elements: "scalar" };
  assert.deepEqual(readJson("[1,2]", shape), [1, 2]);
  assert.throws(() => readJson("[1,2,3", shape), new RangeError("at most 2 are allowed"));
});

Deno.test("an error names the position", () => {
  assert.throws(
    () => readJson('{"a": tru}', "raw"),
    new SyntaxError('unexpected "t" at position 6'),
  );
  assert.throws(() => readJson('{"a": [1', "raw"), new SyntaxError("unexpected end"));
});

Deno.test("nesting of any depth costs no stack", () => {
  const depth = 1_000_000;
  const text = '[{"a":'.repeat(depth) + "1" + "}]".repeat(depth);
  assert.equal((readJson(text, "raw") as RawJson).text.length, text.length);
  assert.throws(() => readJson("[".repeat(depth), "raw"), SyntaxError);
});

const space = fc.stringMatching(/^[ \t\r\n]{0,2}$/);

/** Any JSON text, with white space and escapes where they may stand. */
const jsonText: fc.Arbitrary<string> = fc.letrec<{ text: string; bare: string }>((tie) => ({
  text: fc.tuple(space, tie("bare"), space).map((parts) => parts.join("")),
  bare: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(
      fc.constantFrom("null", "true", "false", "0", "-0", "1e400", "1E+2", "-1.50e-7", '"\\ud800"'),
      fc.bigInt().map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
      fc.string({ unit: "binary" }).map((text) => JSON.stringify(text)),
    ),
    fc.array(tie("text"), { maxLength: 4 }).map((texts) => `[${texts.join(",") || " "}]`),
    fc.array(fc.tuple(fc.string(), space, tie("text")), { maxLength: 4 }).map((members) => {
      const texts = members.map(([key, space, text]) =>
        `${space}${JSON.stringify(key)}${space}:${text}`
      );
      return `{${texts.join(",")}}`;
    }),
  ),
})).text;

function accepts(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    assert(error instanceof SyntaxError, String(error));
    return false;
  }
}

Deno.test("any JSON text is taken, and kept without the white space around it", () => {
  fc.assert(fc.property(jsonText, (text) => {
    const raw = readJson(text, "raw") as RawJson;
    assert.equal(raw.text, text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, ""));
  }));
});

Deno.test("a text is refused exactly where JSON.parse refuses it", () => {
  const edit = fc.tuple(
    fc.nat(),
    fc.nat({ max: 3 }),
    fc.oneof(fc.constantFrom(...'{}[]",:\\0-.eE+u \n\u0001tf'), fc.string({ maxLength: 2 })),
  );
  fc.assert(
    fc.property(jsonText, edit, (text, [at, remove, insert]) => {
      const start = at % (text.length + 1);
      const edited = text.slice(0, start) + insert + text.slice(start + remove);
      const expected = accepts(() => JSON.parse(edited));
      assert.equal(accepts(() => readJson(edited, "raw")), expected, edited);
      assert.equal(accepts(() => readJson(edited, PUSH)), expected, edited);
    }),
    { numRuns: 3000 },
  );
});

Deno.test("the payloads of any push are the texts that were put in", () => {
  const items = fc.array(fc.tuple(jsonText, fc.string(), jsonText), { maxLength: 5 });
  fc.assert(fc.property(items, (items) => {
    const texts = items.map(([payload, queue, other]) =>
      `{"other":${other},"queue":${JSON.stringify(queue)},"payload":${payload}}`
    );
    const text = `{"before":{"items":[1]},"items":[${texts.join(" , ")}]}`;
    const expected = items.map(([payload]) => payload.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, ""));
    assert.deepEqual(payloads(text), expected);
  }));
});
