import { Buffer } from "node:buffer";
import type { Connection } from "../../src/mesh/runtime.ts";
import { type Frame, FRAME_LENGTH_MAX, FrameDecoder } from "../../src/protocol/frame.ts";
import { type Mutant, type Plant, withParts } from "./setup.ts";
import { filteringReads, type PassingFrame, rewritingReads, withAccepted } from "./wire.ts";

const NOTHING = new Uint8Array();

/** Nodes that read frames wrongly. */
export const framingMutants: readonly Mutant[] = [
  {
    name: "length-over-limit-accepted",
    fault: "A frame of 16 MiB and one byte is taken: the limit is one too high.",
    node: "mesh",
    caughtBy: ["framing/length-over-limit-closes"],
    mayFail: ["handshake/bad-length-before-hello"],
    plant: withAccepted((connection) =>
      // It waits for the rest of what the protocol refuses.
      filteringReads(connection, cuttingOff((length) => length === FRAME_LENGTH_MAX + 1))
    ),
  },
  {
    name: "length-limit-refused",
    fault: "A frame of exactly 16 MiB ends the connection: the limit is one too low.",
    node: "mesh",
    caughtBy: ["framing/length-limit-accepted"],
    plant: withDecoder(() =>
      new class extends FrameDecoder {
        override get lengthMax(): number {
          return super.lengthMax;
        }
        override set lengthMax(lengthMax: number) {
          super.lengthMax = Math.min(lengthMax, FRAME_LENGTH_MAX - 1);
        }
      }()
    ),
  },
  {
    name: "zero-length-skipped",
    fault: "A frame of length 0 is passed over instead of ending the connection.",
    node: "mesh",
    caughtBy: ["framing/length-zero-closes"],
    mayFail: ["handshake/bad-length-before-hello"],
    plant: withAccepted((connection) =>
      filteringReads(connection, cuttingOff((length) => length === 0))
    ),
  },
  {
    name: "length-read-as-signed",
    fault:
      "The length is read as a signed number: from 2 GiB on it is negative and passes the limit.",
    node: "mesh",
    caughtBy: ["framing/length-2-gib-closes", "framing/length-4-gib-closes"],
    mayFail: ["handshake/bad-length-before-hello"],
    plant: withAccepted((connection) =>
      filteringReads(connection, cuttingOff((length) => length >= 0x8000_0000))
    ),
  },
  {
    name: "pieces-lost",
    fault: "A frame that arrives in more than one piece is lost.",
    node: "mesh",
    caughtBy: ["framing/one-byte-at-a-time", "framing/cut-at-every-offset"],
    mayFail: ["framing", "handshake/listener-silent", "liveness", "sending"],
    plant: withDecoder(() =>
      new class extends FrameDecoder {
        #wasPartial = false;
        override filled(count: number): void {
          this.#wasPartial = this.partial;
          super.filled(count);
        }
        override next(): Frame | undefined {
          const frame = super.next();
          // The HELLO may come as it likes.
          if (frame === undefined || !this.#wasPartial || this.lengthMax < FRAME_LENGTH_MAX) {
            return frame;
          }
          this.#wasPartial = false;
          return this.next();
        }
      }()
    ),
  },
  {
    name: "one-frame-a-read",
    fault: "Of the frames of one read, only the first is taken.",
    node: "mesh",
    caughtBy: ["framing/many-in-one-segment"],
    mayFail: ["framing", "handshake", "liveness", "topology", "tenants"],
    plant: withDecoder(() =>
      new class extends FrameDecoder {
        #isGiven = false;
        override filled(count: number): void {
          this.#isGiven = false;
          super.filled(count);
        }
        override next(): Frame | undefined {
          let frame = super.next();
          if (this.lengthMax < FRAME_LENGTH_MAX) return frame;
          while (frame !== undefined && this.#isGiven) frame = super.next();
          this.#isGiven = true;
          return frame;
        }
      }()
    ),
  },
  {
    name: "frames-in-reverse",
    fault: "The frames of one segment are applied in the reverse order.",
    node: "mesh",
    caughtBy: ["framing/frames-keep-their-order"],
    mayFail: ["topology/applied-twice"],
    plant: withDecoder(() =>
      new class extends FrameDecoder {
        #waiting: Frame[] = [];
        override next(): Frame | undefined {
          if (this.lengthMax < FRAME_LENGTH_MAX) return super.next();
          if (this.#waiting.length === 0) {
            for (let frame = super.next(); frame; frame = super.next()) {
              this.#waiting.push({ type: frame.type, payload: frame.payload.slice() });
            }
          }
          return this.#waiting.pop();
        }
      }()
    ),
  },
  {
    name: "cut-frame-applied",
    fault: "What has come of a frame is applied where the stream ends inside it.",
    node: "mesh",
    caughtBy: ["framing/end-inside-a-frame"],
    plant: withAccepted((connection) => {
      let held = Buffer.alloc(0);
      let position = 0;
      let isOver = false;
      const whole = (chunk: Uint8Array) => {
        held = Buffer.concat([held, chunk]);
        const out: Uint8Array[] = [];
        while (held.length >= 4) {
          const length = held.readUInt32BE(0);
          const isFrame = length > 0 && length <= FRAME_LENGTH_MAX;
          if (isFrame && held.length < 4 + length) break;
          const end = isFrame ? 4 + length : held.length;
          out.push(held.subarray(0, end));
          held = held.subarray(end);
          position++;
        }
        return Buffer.concat(out);
      };
      const filtered = filteringReads({
        ...plain(connection),
        async read(buffer) {
          const count = isOver ? null : await connection.read(buffer);
          if (count !== null) return count;
          if (isOver || position === 0 || held.length < 5) return null;
          isOver = true;
          // Its end is made up: the length is set to what there is.
          const made = Buffer.from(held);
          made.writeUInt32BE(made.length - 4, 0);
          held = Buffer.alloc(0);
          buffer.set(made);
          return made.length;
        },
      }, whole);
      return filtered;
    }),
  },
  {
    name: "unknown-type-closes",
    fault: "A frame of unknown type ends the connection.",
    node: "mesh",
    caughtBy: ["framing/unknown-type"],
    mayFail: [
      "framing/empty-payload",
      "framing/one-byte-at-a-time",
      "framing/cut-at-every-offset",
      "handshake/listener-silent",
      "liveness",
    ],
    plant: closingAt(({ type, position }) =>
      position > 0 && ![1, 2, 3, 4, 5, 10, 11, 40, 41].includes(type)
    ),
  },
  {
    name: "bad-json-closes",
    fault: "A payload that is no JSON ends the connection.",
    node: "mesh",
    caughtBy: ["framing/payload-not-an-object", "framing/empty-payload"],
    mayFail: ["framing", "handshake/second-hello-ignored", "handshake/listener-silent", "liveness"],
    plant: closingAt(({ payload, position }) => {
      if (position === 0) return false;
      try {
        JSON.parse(payload.toString());
        return false;
      } catch {
        return true;
      }
    }),
  },
  {
    name: "unusable-frames-uncounted",
    fault: "Frames that cannot be used do not count as received.",
    node: "mesh",
    caughtBy: [
      "framing/unknown-type",
      "framing/payload-not-an-object",
      "liveness/counts-every-frame",
    ],
    mayFail: ["framing", "handshake", "liveness", "topology", "tenants", "maintenance"],
    plant: withAccepted((connection) =>
      rewritingReads(connection, ({ type, payload, bytes, position }) => {
        if (position === 0 || type === 3) return bytes;
        if (![1, 2, 5, 10, 11, 40, 41].includes(type)) return NOTHING;
        try {
          const json: unknown = JSON.parse(payload.toString());
          return typeof json === "object" && json !== null && !Array.isArray(json)
            ? bytes
            : NOTHING;
        } catch {
          return NOTHING;
        }
      })
    ),
  },
];

function plain(connection: Connection): Connection {
  return {
    remote: connection.remote,
    read: (buffer) => connection.read(buffer),
    write: (bytes) => connection.write(bytes),
    close: () => connection.close(),
  };
}

function withDecoder(createDecoder: () => FrameDecoder): Plant {
  return withParts({ createDecoder });
}

/** Takes everything from a length on that is found to be special out of the stream. */
function cuttingOff(isSpecial: (length: number) => boolean): (chunk: Buffer) => Uint8Array {
  let held = Buffer.alloc(0);
  let isOff = false;
  return (chunk) => {
    if (isOff) return NOTHING;
    held = Buffer.concat([held, chunk]);
    const out: Uint8Array[] = [];
    while (held.length >= 4) {
      const length = held.readUInt32BE(0);
      if (isSpecial(length)) {
        isOff = true;
        break;
      }
      // What is too long as well goes on, to be refused.
      const end = length > FRAME_LENGTH_MAX || length === 0 ? held.length : 4 + length;
      if (held.length < end) break;
      out.push(held.subarray(0, end));
      held = held.subarray(end);
    }
    return Buffer.concat(out);
  };
}

/** Ends the connection at a frame that is found to be special. */
function closingAt(isSpecial: (frame: PassingFrame) => boolean): Plant {
  return withAccepted((connection) =>
    rewritingReads(connection, (frame) => {
      if (!isSpecial(frame)) return frame.bytes;
      connection.close();
      return NOTHING;
    })
  );
}
