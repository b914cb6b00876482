import type { ConformanceCase } from "../case.ts";
import type { CaseContext } from "../context.ts";
import { expectEqual, expectThat } from "../harness/failure.ts";
import { announcement, frame, FRAME_TYPES, joined, LENGTH_MAX } from "../harness/frame.ts";
import { helloFrame, validHello } from "../harness/hello.ts";
import { wakesOf } from "../harness/listener.ts";
import { expectPopped, parkBesideMessage, type ParkedPop } from "./support/pops.ts";

const { HEARTBEAT, HELLO, MESSAGE_AVAILABLE, MESSAGE_AVAILABLE_BATCH } = FRAME_TYPES;
const { HOTLIST_DIRTY_BATCH, QUEUE_CONFIG_SET, QUEUE_CONFIG_DELETE } = FRAME_TYPES;
const { MAINTENANCE_MODE_SET, POP_MAINTENANCE_MODE_SET } = FRAME_TYPES;

/** A frame that has no effect beside being counted. */
const beat = (): Uint8Array => frame(HEARTBEAT, { server_id: "suite" });

/** Frames of the wire format, and what breaks it. */
export const framingCases: readonly ConformanceCase[] = [
  {
    id: "framing/length-counts-type-and-payload",
    requirements: ["FRM-1"],
    level: "must",
    sentence: "The length of a frame that the node sends counts its type byte and its payload.",
    topology: "signed",
    needs: [["notify", "broker"]],
    attach: "changes",
    async run(context) {
      await context.untilDialled();
      const mark = context.peer.frames.length;
      for (const name of ["a", "ä€", "a".repeat(300)]) {
        const queue = context.uniqueName(name);
        await context.hint(context.node, { queue });
        // A length that is off by any number leaves the reader without a frame, or with another.
        await context.frameAfter(
          mark,
          `a wake for queue "${queue}" as a frame by itself`,
          (received) => wakesOf([received]).some((wake) => wake.queue === queue),
        );
      }
      const { violation } = context.peer.connections.at(-1)!;
      expectThat(violation === undefined, "well-formed frames alone", violation);
    },
  },
  closing("framing/length-zero-closes", {
    requirement: "FRM-2",
    sentence: "A frame that announces a length of 0 ends the connection.",
    length: 0,
  }),
  closing("framing/length-over-limit-closes", {
    requirement: "FRM-3",
    sentence: "A frame that announces 16 MiB and one byte ends the connection.",
    length: LENGTH_MAX + 1,
  }),
  closing("framing/length-4-gib-closes", {
    requirement: "FRM-3",
    sentence:
      "A frame that announces 4 GiB less one byte, a negative number to some, ends the connection.",
    length: 0xffff_ffff,
  }),
  closing("framing/length-2-gib-closes", {
    requirement: "FRM-3",
    sentence:
      "A frame that announces 2 GiB, the first number with the top bit set, ends the connection.",
    length: 0x8000_0000,
  }),
  {
    id: "framing/length-limit-accepted",
    requirements: ["FRM-4"],
    level: "must",
    sentence: "A frame of exactly 16 MiB is taken once the handshake is done.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const dialer = await context.dialAsPeer();
      // Valid JSON to the last byte, so that nobody may give it up for another reason.
      const text = `{"server_id":"${"x".repeat(LENGTH_MAX - 1 - 16)}"}`;
      const large = frame(HEARTBEAT, text);
      expectEqual("the suite's own frame length", large.length, 4 + LENGTH_MAX);
      await context.expectReceived(2, () => dialer.send(large, beat()));
      expectThat(!dialer.hasEnded, "the connection to stay open", "the node has ended it");
    },
  },
  {
    id: "framing/one-byte-at-a-time",
    requirements: ["FRM-5"],
    level: "must",
    sentence: "A HELLO and frames that come one byte at a time are taken as if they came whole.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const stream = joined(
        helloFrame(validHello(context.node.secret, context.uniqueName("peer"))),
        beat(),
        frame(99),
        frame(MESSAGE_AVAILABLE, { queue: "nobody", partition: "p" }),
      );
      const dialer = await context.dial();
      await context.expectReceived(3, async () => {
        for (let i = 0; i < stream.length; i++) await dialer.send(stream.subarray(i, i + 1));
      });
      expectThat(!dialer.hasEnded, "the connection to stay open", "the node has ended it");
    },
  },
  {
    id: "framing/cut-at-every-offset",
    requirements: ["FRM-5"],
    level: "must",
    sentence: "Two frames that come in two segments are taken wherever the cut is.",
    topology: "signed",
    async run(context) {
      const stream = joined(beat(), frame(77, { a: 1 }));
      const dialer = await context.dialAsPeer();
      await context.expectReceived(2 * (stream.length - 1), async () => {
        for (let cut = 1; cut < stream.length; cut++) {
          await dialer.send(stream.subarray(0, cut));
          await dialer.send(stream.subarray(cut));
        }
      });
    },
  },
  {
    id: "framing/many-in-one-segment",
    requirements: ["FRM-6", "LIV-4"],
    level: "must",
    sentence: "A thousand frames in one write are all taken.",
    topology: "signed",
    async run(context) {
      const dialer = await context.dialAsPeer();
      const stream = joined(...Array.from({ length: 1000 }, beat));
      await context.expectReceived(1000, () => dialer.send(stream));
    },
  },
  {
    id: "framing/frames-keep-their-order",
    requirements: ["FRM-6", "MNT-1"],
    level: "must",
    sentence:
      "The frames of one segment take effect in their order: of many flips, the last one stays.",
    topology: "signed",
    async run(context) {
      const dialer = await context.dialAsPeer();
      const flips = Array.from(
        { length: 51 },
        (_, i) => frame(MAINTENANCE_MODE_SET, { enabled: i % 2 === 0 }),
      );
      await context.expectReceived(52, () => dialer.send(joined(...flips), beat()));
      // One with a database asks that, and it has the last word: there nothing shows the order.
      if (!context.capabilities.has("broker")) {
        const read = async () => (await context.stats())["maintenance_mode"];
        await context.until("maintenance_mode to be true, as the last flip says", read, Boolean);
        await dialer.send(joined(...flips, frame(MAINTENANCE_MODE_SET, { enabled: false })));
        await context.until("maintenance_mode to be false again", read, (mode) => mode === false);
      }
    },
  },
  {
    id: "framing/hello-and-frames-in-one-segment",
    requirements: ["FRM-6"],
    level: "must",
    sentence: "Frames in the same segment as the HELLO are taken.",
    topology: "signed",
    attach: "changes",
    async run(context) {
      const dialer = await context.dial();
      const hello = helloFrame(validHello(context.node.secret, context.uniqueName("peer")));
      await context.expectReceived(3, () => dialer.send(joined(hello, beat(), beat(), beat())));
    },
  },
  {
    id: "framing/end-inside-a-frame",
    requirements: ["FRM-7"],
    level: "must",
    sentence:
      "Of a frame in which the stream ends nothing takes effect, and the node goes on serving others.",
    topology: "signed",
    async run(context) {
      const flip = frame(MAINTENANCE_MODE_SET, { enabled: true });
      await context.expectReceived(0, async () => {
        for (const cut of [1, 4, 5, flip.length - 1]) {
          const dialer = await context.dialAsPeer();
          await dialer.send(flip.subarray(0, cut));
          dialer.end();
          await context.within("the node to end its side as well", dialer.ended);
        }
      });
      expectEqual("maintenance_mode", (await context.stats())["maintenance_mode"], false);
    },
  },
  {
    id: "framing/empty-payload",
    requirements: ["FRM-8", "FRM-10"],
    level: "must",
    sentence: "A frame without a payload is taken, whatever its type.",
    topology: "signed",
    async run(context) {
      const types = [1, 2, 3, 5, 10, 11, 40, 41, 0, 255];
      await expectIgnored(context, types.map((type) => frame(type)));
    },
  },
  {
    id: "framing/unknown-type",
    requirements: ["FRM-9", "LIV-4"],
    level: "must",
    sentence: "Frames of every type that the protocol does not name are passed over and counted.",
    topology: "signed",
    async run(context) {
      const named = new Set<number>(Object.values(FRAME_TYPES));
      const unknown = Array.from({ length: 256 }, (_, type) => type).filter((type) =>
        !named.has(type)
      );
      await expectIgnored(
        context,
        unknown.map((type) => frame(type, { enabled: true, queue: "q" })),
      );
    },
  },
  {
    id: "framing/payload-not-an-object",
    requirements: ["FRM-10"],
    level: "must",
    sentence: "Payloads that are no JSON objects are ignored and counted.",
    topology: "signed",
    async run(context) {
      const payloads = [
        "",
        "null",
        "true",
        "[]",
        "[1,2]",
        "17",
        '"text"',
        "{",
        "}",
        '{"queue":',
        '{"queue":"q"',
        "{'queue':'q'}",
        '{"enabled":true}x',
        "NaN",
        "\u0000",
        "nul",
        '{"enabled":true,}',
        new Uint8Array([0xff, 0xfe, 0x00]),
        new Uint8Array([0xc3, 0x28]),
      ];
      const types = [
        MESSAGE_AVAILABLE,
        MESSAGE_AVAILABLE_BATCH,
        HEARTBEAT,
        HOTLIST_DIRTY_BATCH,
        QUEUE_CONFIG_SET,
        QUEUE_CONFIG_DELETE,
        MAINTENANCE_MODE_SET,
        POP_MAINTENANCE_MODE_SET,
      ];
      await expectIgnored(
        context,
        types.flatMap((type) => payloads.map((payload) => frame(type, payload))),
      );
    },
  },
  {
    id: "framing/fields-of-wrong-type",
    requirements: ["FRM-10"],
    level: "must",
    sentence: "Payloads whose fields have the wrong types are ignored and counted.",
    topology: "signed",
    async run(context) {
      const values = [null, 1, [], {}, [null], { a: 1 }, -0.5];
      const payloads = values.flatMap((value) => [
        frame(MESSAGE_AVAILABLE, { queue: value, partition: value, tenant: value }),
        frame(MESSAGE_AVAILABLE_BATCH, { items: value }),
        frame(MESSAGE_AVAILABLE_BATCH, { items: [value, [value], { queue: value }] }),
        frame(HOTLIST_DIRTY_BATCH, { items: value }),
        frame(HOTLIST_DIRTY_BATCH, { items: [value, { queue: value, group: value }] }),
        frame(HEARTBEAT, { server_id: value }),
        frame(QUEUE_CONFIG_SET, { queue: value, tenant: value }),
        frame(QUEUE_CONFIG_DELETE, { queue: value, tenant: value }),
      ]);
      await expectIgnored(context, payloads);
    },
  },
  {
    id: "framing/deep-json",
    requirements: ["FRM-10"],
    level: "must",
    sentence:
      "A payload that is nested a hundred thousand levels deep ends neither connection nor node.",
    topology: "signed",
    async run(context) {
      const depth = 100_000;
      const list = `${"[".repeat(depth)}${"]".repeat(depth)}`;
      const object = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
      await expectIgnored(context, [
        frame(MESSAGE_AVAILABLE, list),
        frame(MESSAGE_AVAILABLE, `{"queue":${list}}`),
        frame(MESSAGE_AVAILABLE_BATCH, `{"items":${list}}`),
        frame(HOTLIST_DIRTY_BATCH, `{"items":[${object}]}`),
        frame(MAINTENANCE_MODE_SET, `{"enabled":${object}}`),
        frame(MAINTENANCE_MODE_SET, "[".repeat(depth)),
      ]);
    },
  },
  {
    id: "framing/batch-skips-unusable-items",
    requirements: ["FRM-11"],
    level: "must",
    sentence:
      "Of a batch, the items that cannot be used are passed over and the others wake their pops.",
    topology: "bystander",
    needs: ["broker"],
    async run(context) {
      const [judged, silent] = context.twoNodes;
      const queues = [context.uniqueName("first"), context.uniqueName("last")];
      const pops: ParkedPop[] = [];
      for (const queue of queues) {
        pops.push(await parkBesideMessage(context, { judged, silent, queue }));
      }
      const dialer = await context.dialAsPeer();
      await dialer.send(frame(MESSAGE_AVAILABLE_BATCH, {
        items: [
          null,
          1,
          "text",
          [],
          {},
          { queue: "" },
          { queue: 7 },
          { partition: "p" },
          { queue: queues[0] },
          { queue: null, tenant: 3 },
          [[]],
          { queue: queues[1], partition: "", unknown: { a: 1 } },
        ],
      }));
      for (const [i, pop] of pops.entries()) {
        await expectPopped(context, pop, `the pop of queue "${queues[i]}" to be woken by its item`);
      }
    },
  },
  {
    id: "framing/large-batch-is-split",
    requirements: ["FRM-12"],
    level: "must",
    sentence:
      "A push to so many partitions that its hints fill more than 16 MiB leaves as several frames.",
    topology: "signed",
    needs: ["broker"],
    timeoutMs: 60_000,
    async run(context) {
      await context.untilDialled();
      const mark = context.peer.frames.length;
      const queue = context.uniqueName("split");
      // Each quote needs two bytes as JSON: 8 200 names of 512 bytes make more than 16 MiB.
      const partitions = Array.from(
        { length: 8200 },
        (_, i) => String(i).padStart(6, "0").padEnd(512, '"'),
      );
      await context.push(context.node, partitions.map((partition) => ({ queue, partition })));
      await context.until(
        "a wake for each of 8200 partitions, in frames of at most 16 MiB",
        () => new Set(wakesOf(context.peer.frames.slice(mark)).map((wake) => wake.partition)),
        (seen) => seen.size === partitions.length,
        {
          timeoutMs: 30_000,
          describe: (seen) =>
            `${seen.size} partitions; ${
              context.peer.connections.at(-1)?.violation ?? "no broken frame"
            }`,
        },
      );
    },
  },
];

/** Frames that must be counted, change nothing, and leave the connection open. */
async function expectIgnored(
  context: CaseContext,
  frames: readonly Uint8Array[],
): Promise<void> {
  const dialer = await context.dialAsPeer();
  await context.expectReceived(frames.length + 1, () => dialer.send(joined(...frames), beat()));
  expectThat(!dialer.hasEnded, "the connection to stay open", "the node has ended it");
  const stats = await context.stats();
  expectEqual("maintenance_mode", stats["maintenance_mode"], false);
  expectEqual("pop_maintenance_mode", stats["pop_maintenance_mode"], false);
}

/** A length that must end the connection, after the HELLO and frames that were still in order. */
function closing(
  id: string,
  { requirement, sentence, length }: { requirement: string; sentence: string; length: number },
): ConformanceCase {
  return {
    id,
    requirements: [requirement],
    level: "must",
    sentence,
    topology: "signed",
    attach: "changes",
    async run(context) {
      const dialer = await context.dialAsPeer();
      await context.expectReceived(1, () => dialer.send(beat()));
      await dialer.send(announcement(length, HELLO));
      await context.expectClosed(dialer, `at a length of ${length}`);
      // And only that connection: the node serves the next one.
      const next = await context.dialAsPeer();
      await context.expectReceived(1, () => next.send(beat()));
    },
  };
}
