import { Buffer } from "node:buffer";
import type { ConformanceCase } from "../case.ts";
import type { CaseContext } from "../context.ts";
import { expectEqual, expectThat } from "../harness/failure.ts";
import { announcement, frame, FRAME_TYPES, joined } from "../harness/frame.ts";
import {
  freshNonce,
  type Hello,
  helloFrame,
  macOf,
  macOverDecodedBytes,
  validHello,
} from "../harness/hello.ts";
import { counter } from "../harness/target_node.ts";

const { HEARTBEAT, HELLO, MAINTENANCE_MODE_SET, MESSAGE_AVAILABLE } = FRAME_TYPES;

const beat = (): Uint8Array => frame(HEARTBEAT, { server_id: "suite" });

/** Payloads that no HELLO may have, by what they are. */
const NO_OBJECTS = {
  "null": "null",
  list: "[]",
  string: '"hello"',
  number: "17",
  empty: "",
  cut: "{",
  text: "not json",
};

/** What the node says when it dials, and whom it lets in when it is dialled. */
export const handshakeCases: readonly ConformanceCase[] = [
  {
    id: "handshake/hello-first",
    requirements: ["HSK-1"],
    level: "must",
    sentence: "The first frame on a connection that the node dials is a HELLO with its server_id.",
    topology: "signed",
    async run(context) {
      const ids = new Set((await hellos(context)).map(({ server_id }) => server_id));
      expectEqual("the server_id of the HELLOs, as in the stats", [...ids], [
        (await context.stats())["server_id"],
      ]);
    },
  },
  {
    id: "handshake/nonce-format",
    requirements: ["HSK-1"],
    level: "must",
    sentence: "The nonce of the node's HELLO is 32 lowercase hex digits.",
    topology: "signed",
    async run(context) {
      for (const { nonce } of await hellos(context)) expectNonce(nonce);
    },
  },
  {
    id: "handshake/nonce-fresh",
    requirements: ["HSK-1"],
    level: "must",
    sentence: "Each connection that the node dials has a nonce of its own.",
    topology: "signed",
    async run(context) {
      const nonces = (await hellos(context)).map(({ nonce }) => nonce);
      expectThat(new Set(nonces).size === nonces.length, "no nonce twice", nonces);
    },
  },
  {
    id: "handshake/mac-over-hex-text",
    requirements: ["HSK-2"],
    level: "must",
    sentence:
      "With a secret, the mac of the node's HELLO is the HMAC-SHA256 of the nonce's hex text in lowercase hex.",
    topology: "signed",
    async run(context) {
      for (const { nonce, mac } of await hellos(context)) {
        expectEqual(
          `the mac of the nonce ${nonce}`,
          mac,
          macOf(context.node.secret, String(nonce)),
        );
      }
    },
  },
  {
    id: "handshake/mac-empty-in-open-mode",
    requirements: ["HSK-2"],
    level: "must",
    sentence:
      "Without a secret, the mac of the node's HELLO is an empty string and its nonce is one all the same.",
    topology: "open",
    async run(context) {
      for (const { nonce, mac } of await hellos(context)) {
        expectEqual("the mac", mac, "");
        expectNonce(nonce);
      }
    },
  },
  {
    id: "handshake/valid-hello-accepted",
    requirements: ["HSK-2", "HSK-4"],
    level: "must",
    sentence: "A peer with the right mac is let in, and is no failed handshake.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const failures = await context.counter("handshake_failures");
      const dialer = await context.dialAsPeer();
      await context.expectReceived(1, () => dialer.send(beat()));
      expectThat(!dialer.hasEnded, "the connection to stay open", "the node has ended it");
      if (context.isShared) return;
      expectEqual("handshake_failures", await context.counter("handshake_failures"), failures);
    },
  },
  {
    id: "handshake/valid-hello-with-more-keys",
    requirements: ["HSK-2"],
    level: "must",
    sentence: "A HELLO with keys that the protocol does not name, in any order, is accepted.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const { server_id, nonce, mac } = validHello(context.node.secret, context.uniqueName("peer"));
      const dialer = await context.dial();
      await dialer.send(helloFrame({ version: 9, mac, extra: { a: [1] }, nonce, server_id }));
      await context.expectReceived(1, () => dialer.send(beat()));
    },
  },
  refused("handshake/mac-over-decoded-bytes-refused", {
    sentence: "A mac over the bytes that the nonce's digits spell is refused.",
    hello: ({ secret, valid }) => ({ ...valid, mac: macOverDecodedBytes(secret, valid.nonce) }),
  }),
  refused("handshake/wrong-secret-refused", {
    sentence: "A mac under another secret is refused.",
    hello: ({ secret, valid }) => ({ ...valid, mac: macOf(`${secret}x`, valid.nonce) }),
  }),
  refused("handshake/mac-of-another-nonce-refused", {
    sentence: "A mac that was made for another nonce is refused.",
    hello: ({ secret, valid }) => ({ ...valid, mac: macOf(secret, freshNonce()) }),
  }),
  refused("handshake/mac-cut-short-refused", {
    sentence: "A mac that is right as far as it goes, and shorter, is refused.",
    hello: ({ valid }) => ({ ...valid, mac: valid.mac.slice(0, 62) }),
  }),
  refused("handshake/mac-with-more-refused", {
    sentence: "A mac with something behind it is refused.",
    hello: ({ valid }) => ({ ...valid, mac: `${valid.mac}00` }),
  }),
  refused("handshake/mac-empty-refused", {
    sentence: "An empty mac is refused where there is a secret.",
    hello: ({ valid }) => ({ ...valid, mac: "" }),
  }),
  refused("handshake/mac-not-hex", {
    sentence: "A mac that is no hex is refused.",
    hello: ({ valid }) => ({ ...valid, mac: "z".repeat(64) }),
  }),
  refused("handshake/mac-not-a-string", {
    sentence: "A mac that is no string is refused.",
    hello: ({ valid }) => ({ ...valid, mac: 64 }),
  }),
  refused("handshake/mac-missing", {
    sentence: "A HELLO without a mac is refused.",
    hello: ({ valid: { server_id, nonce } }) => ({ server_id, nonce }),
  }),
  refused("handshake/nonce-missing", {
    sentence: "A HELLO without a nonce is refused, even with a mac that fits an empty one.",
    hello: ({ secret, valid: { server_id } }) => ({ server_id, mac: macOf(secret, "") }),
  }),
  refused("handshake/server-id-missing", {
    sentence: "A HELLO without a server_id is refused.",
    hello: ({ valid: { nonce, mac } }) => ({ nonce, mac }),
  }),
  refused("handshake/server-id-empty", {
    sentence: "A HELLO whose server_id is empty is refused.",
    hello: ({ valid }) => ({ ...valid, server_id: "" }),
  }),
  refused("handshake/server-id-not-a-string", {
    sentence: "A HELLO whose server_id is no string is refused.",
    hello: ({ valid }) => ({ ...valid, server_id: 7 }),
  }),
  ...Object.entries(NO_OBJECTS).map(([name, payload]) =>
    refused(`handshake/hello-${name}`, {
      sentence: `A HELLO whose payload is ${payload === "" ? "empty" : payload} is refused.`,
      hello: () => payload,
    })
  ),
  {
    id: "handshake/first-frame-other-type",
    requirements: ["HSK-4", "HSK-5"],
    level: "must",
    sentence: "A first frame that is no HELLO is refused, though its payload were one.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const hello = validHello(context.node.secret, context.uniqueName("peer"));
      for (const type of [HEARTBEAT, MESSAGE_AVAILABLE, MAINTENANCE_MODE_SET, 0, 99]) {
        await expectRefused(context, frame(type, { ...hello, enabled: true }));
      }
    },
  },
  {
    id: "handshake/after-refused-hello-nothing-dispatched",
    requirements: ["HSK-5"],
    level: "must",
    sentence: "Nothing that follows a refused HELLO is taken, not even from the same segment.",
    topology: "signed",
    async run(context) {
      const wrong = {
        ...validHello(context.node.secret, context.uniqueName("peer")),
        mac: "0".repeat(64),
      };
      const flip = frame(MAINTENANCE_MODE_SET, { enabled: true });
      await context.expectReceived(0, async () => {
        const dialer = await context.dial();
        await dialer.send(joined(helloFrame(wrong), flip, beat(), beat()));
        await context.expectClosed(dialer, "after a HELLO with a wrong mac");
        const second = await context.dial();
        await second.send(
          joined(helloFrame(wrong), helloFrame(validHello(context.node.secret, "late")), flip),
        );
        await context.expectClosed(
          second,
          "after a HELLO with a wrong mac, though a right one follows",
        );
      });
      expectEqual("maintenance_mode", (await context.stats())["maintenance_mode"], false);
    },
  },
  {
    id: "handshake/nothing-before-the-hello",
    requirements: ["HSK-3", "HSK-4"],
    level: "must",
    sentence: "Frames that come before a right HELLO are not taken.",
    topology: "signed",
    async run(context) {
      const hello = helloFrame(validHello(context.node.secret, context.uniqueName("peer")));
      const flip = frame(MAINTENANCE_MODE_SET, { enabled: true });
      await context.expectReceived(0, async () => {
        const dialer = await context.dial();
        await dialer.send(joined(flip, hello, beat()));
        await context.expectClosed(dialer, "whose first frame is no HELLO");
      });
      expectEqual("maintenance_mode", (await context.stats())["maintenance_mode"], false);
    },
  },
  {
    id: "handshake/open-mode-needs-hello",
    requirements: ["HSK-6", "HSK-4"],
    level: "must",
    sentence: "In open mode a first frame that is no HELLO is refused as well.",
    topology: "open",
    attach: "changes",
    async run(context) {
      await expectRefused(context, frame(HEARTBEAT, { server_id: "suite" }));
      await expectRefused(context, frame(MAINTENANCE_MODE_SET, { enabled: true }));
    },
  },
  {
    id: "handshake/open-mode-accepts-any-mac",
    requirements: ["HSK-6"],
    level: "must",
    sentence: "In open mode any nonce and any mac pass, those of a peer with a secret too.",
    topology: "open",
    attach: "changes",
    async run(context) {
      const id = () => context.uniqueName("peer");
      const hellos: unknown[] = [
        { server_id: id(), nonce: freshNonce(), mac: "" },
        validHello("a secret of its own", id()),
        { server_id: id() },
        { server_id: id(), nonce: 7, mac: null },
        { server_id: id(), nonce: "short", mac: "not hex" },
      ];
      for (const hello of hellos) {
        const dialer = await context.dial();
        await dialer.send(helloFrame(hello));
        await context.expectReceived(1, () => dialer.send(beat()));
        expectThat(!dialer.hasEnded, "the connection to stay open", { hello });
      }
    },
  },
  {
    id: "handshake/open-mode-needs-server-id",
    requirements: ["HSK-6", "HSK-4"],
    level: "must",
    sentence: "In open mode a HELLO without a usable server_id is refused.",
    topology: "open",
    attach: "changes",
    async run(context) {
      for (
        const hello of [{}, { server_id: "" }, { server_id: 7 }, { server_id: null }, [], null]
      ) {
        await expectRefused(context, helloFrame(hello === null ? "null" : hello));
      }
    },
  },
  {
    id: "handshake/uppercase-mac",
    requirements: ["HSK-7"],
    level: "should",
    sentence: "A mac in uppercase hex is accepted.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const hello = validHello(context.node.secret, context.uniqueName("peer"));
      const dialer = await context.dial();
      await dialer.send(helloFrame({ ...hello, mac: hello.mac.toUpperCase() }));
      await context.expectReceived(1, () => dialer.send(beat()));
    },
  },
  {
    id: "handshake/end-before-hello",
    requirements: ["HSK-8", "FRM-7"],
    level: "must",
    sentence:
      "A stream that ends before its HELLO is complete is closed, and the node goes on serving.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const hello = helloFrame(validHello(context.node.secret, context.uniqueName("peer")));
      for (const cut of [0, 1, 4, 5, 40, hello.length - 1]) {
        const dialer = await context.dial();
        await dialer.send(hello.subarray(0, cut));
        dialer.end();
        await context.expectClosed(dialer, `whose stream ends after ${cut} bytes of a HELLO`);
      }
      const next = await context.dialAsPeer();
      await context.expectReceived(1, () => next.send(beat()));
    },
  },
  {
    id: "handshake/bad-length-before-hello",
    requirements: ["HSK-8", "FRM-2", "FRM-3"],
    level: "must",
    sentence: "A bad length in the place of the HELLO ends the connection.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      for (const length of [0, 16 * 1024 * 1024 + 1, 0x8000_0000, 0xffff_ffff]) {
        const dialer = await context.dial();
        await dialer.send(announcement(length, HELLO));
        await context.expectClosed(dialer, `at a length of ${length} before the HELLO`);
      }
    },
  },
  {
    id: "handshake/second-hello-ignored",
    requirements: ["HSK-9"],
    level: "must",
    sentence:
      "A second HELLO, right or wrong, is passed over like a frame of unknown type, and counted.",
    topology: "signed",
    async run(context) {
      const failures = await context.counter("handshake_failures");
      const dialer = await context.dialAsPeer();
      const right = validHello(context.node.secret, context.uniqueName("other"));
      await context.expectReceived(4, () =>
        dialer.send(
          helloFrame(right),
          helloFrame({ ...right, mac: "0".repeat(64) }),
          helloFrame("not json"),
          beat(),
        ));
      expectThat(!dialer.hasEnded, "the connection to stay open", "the node has ended it");
      expectEqual("handshake_failures", await context.counter("handshake_failures"), failures);
    },
  },
  {
    id: "handshake/listener-silent",
    requirements: ["HSK-10"],
    level: "must",
    sentence: "The node writes nothing on connections that it accepted, whatever comes.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const dialer = await context.dialAsPeer();
      await context.expectReceived(4, () =>
        dialer.send(
          beat(),
          frame(MESSAGE_AVAILABLE, { queue: context.uniqueName("q"), partition: "" }),
          frame(99),
          frame(HELLO, {}),
        ));
      // What it might have written to the end comes before its end.
      dialer.end();
      await context.expectClosed(dialer, "whose other side has ended");
      expectEqual("the number of bytes that it sent before", dialer.receivedBytes, 0);
    },
  },
  {
    id: "handshake/large-hello",
    requirements: ["HSK-B"],
    level: "info",
    sentence: "Whether a HELLO of more than 64 KiB is accepted.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const hello = validHello(context.node.secret, context.uniqueName("peer"));
      const large = helloFrame({ ...hello, padding: "x".repeat(70_000) });
      context.note(
        await isRefused(context, large)
          ? "A HELLO of more than 64 KiB is refused."
          : "A HELLO of more than 64 KiB is accepted.",
      );
    },
  },
  {
    id: "handshake/replay",
    requirements: ["HSK-B"],
    level: "info",
    sentence: "Whether a HELLO that was accepted once is accepted again on another connection.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const hello = helloFrame(validHello(context.node.secret, context.uniqueName("peer")));
      const first = await context.dial();
      await context.expectReceived(1, () => first.send(hello, beat()));
      context.note(
        await isRefused(context, hello)
          ? "A HELLO that was captured and is sent again is refused."
          : "A HELLO that was captured and is sent again is accepted.",
      );
    },
  },
  {
    id: "handshake/connections-of-one-id",
    requirements: ["HSK-B"],
    level: "info",
    sentence: "How many connections with one server_id are kept.",
    topology: "signed",
    async run(context) {
      const serverId = context.uniqueName("peer");
      const dialers = [];
      for (let i = 0; i < 8; i++) {
        const dialer = await context.dialAsPeer({ serverId });
        await context.expectReceived(1, () => dialer.send(beat()));
        dialers.push(dialer);
      }
      const open = dialers.filter((dialer) => !dialer.hasEnded).length;
      context.note(
        open === 8
          ? "Eight connections with one server_id are all kept."
          : `Of eight connections with one server_id, ${open} are kept.`,
      );
    },
  },
];

/** A HELLO that a node with a secret must refuse. */
function refused(
  id: string,
  { sentence, hello }: {
    sentence: string;
    hello: (
      given: { secret: string; valid: Record<keyof Hello, string> },
    ) => unknown;
  },
): ConformanceCase {
  return {
    id,
    requirements: ["HSK-4"],
    level: "must",
    sentence,
    topology: "signed",
    attach: "changes",
    run(context) {
      const { secret } = context.node;
      const valid = validHello(secret, context.uniqueName("peer"));
      return expectRefused(context, helloFrame(hello({ secret, valid })));
    },
  };
}

function expectNonce(nonce: unknown): void {
  expectThat(
    typeof nonce === "string" && /^[0-9a-f]{32}$/.test(nonce),
    "a nonce of 32 lowercase hex digits",
    { nonce },
  );
}

/** First bytes that must end the connection without a word, as one failed handshake. */
async function expectRefused(context: CaseContext, bytes: Uint8Array): Promise<void> {
  const before = await context.stats();
  const dialer = await context.dial();
  await dialer.send(bytes);
  await context.expectClosed(dialer, "instead of letting it in");
  expectEqual("the number of bytes that it sent before", dialer.receivedBytes, 0);
  const failures = counter(before, "handshake_failures");
  const after = await context.until(
    "handshake_failures to go up by one",
    () => context.counter("handshake_failures"),
    (count) => count > failures,
    { describe: (count) => `from ${failures} to ${count}` },
  );
  if (context.isShared) return;
  expectEqual("handshake_failures", after, failures + 1);
  expectEqual(
    "messages_received",
    await context.counter("messages_received"),
    counter(before, "messages_received"),
  );
}

/**
 * The HELLOs of the connections that the node has dialled so far, two of them at least. More of them
 * cost backoff, so that cases share those that there are.
 */
async function hellos(context: CaseContext): Promise<Hello[]> {
  const { peer } = context;
  await context.untilDialled();
  if (peer.connections.length < 2) {
    peer.disconnect();
    await context.until("the node to dial again", () => peer.connections.length, (n) => n >= 2);
    await context.untilDialled();
  }
  return peer.connections.flatMap(({ frames: [first] }) => {
    if (!first) return [];
    expectEqual("the type of the first frame", first.type, HELLO);
    expectThat(
      typeof first.json === "object" && first.json !== null,
      "a HELLO with a JSON object",
      Buffer.from(first.payload).toString(),
    );
    return [first.json as Hello];
  });
}

/** Sends first bytes with a frame behind them: whether the node ends the connection or takes the frame. */
async function isRefused(context: CaseContext, hello: Uint8Array): Promise<boolean> {
  const before = await context.counter("messages_received");
  const dialer = await context.dial();
  await dialer.send(hello, beat());
  await context.until(
    "the node to end the connection, or to count the frame behind the HELLO",
    async () => dialer.hasEnded || await context.counter("messages_received") > before,
    Boolean,
  );
  return dialer.hasEnded;
}
