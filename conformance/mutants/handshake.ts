import { Buffer } from "node:buffer";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { Handshake, type HandshakeVerdict } from "../../src/mesh/handshake.ts";
import { encodeFrame, type Frame } from "../../src/protocol/frame.ts";
import { createMac } from "../../src/protocol/hello.ts";
import { type Mutant, type Plant, withMeshOptions, withParts, withStats } from "./setup.ts";
import { rewritingReads, rewritingWrites, withAccepted, withDialled, writeAll } from "./wire.ts";

const HELLO = 4;
const NOTHING = new Uint8Array();

/** Nodes that greet wrongly, or let the wrong ones in. */
export const handshakeMutants: readonly Mutant[] = [
  {
    name: "no-hello-needed",
    fault: "A first frame that is no HELLO is let in.",
    node: "mesh",
    caughtBy: [
      "handshake/first-frame-other-type",
      "handshake/nothing-before-the-hello",
      "handshake/open-mode-needs-hello",
    ],
    plant: judging((frame, verdict) =>
      frame.type === HELLO || verdict.kind !== "refused"
        ? verdict
        : { kind: "accepted", serverId: "somebody" }
    ),
  },
  {
    name: "refused-hello-dispatches-rest",
    fault:
      "What follows a refused HELLO in the same segment is applied before the connection closes.",
    node: "mesh",
    caughtBy: ["handshake/after-refused-hello-nothing-dispatched"],
    plant: (setup) => {
      let apply: ((enabled: boolean) => void) | undefined;
      const counted = withMeshOptions(({ onMessage }) => {
        apply = (enabled) => onMessage({ type: "maintenance_mode", enabled }, "refused");
        return {};
      })(setup);
      const secret = setup.env["QUEEN_SYNC_SECRET"] ?? "";
      return withAccepted((connection) => {
        let isRefused = false;
        return rewritingReads(connection, ({ type, payload, bytes, position }) => {
          if (position === 0) isRefused = type === HELLO && !isSigned(payload, secret);
          else if (isRefused && type === 40) apply?.(JSON.parse(payload.toString()).enabled);
          return bytes;
        });
      })(counted);
    },
  },
  {
    name: "mac-over-decoded-nonce-sent",
    fault: "The mac of its HELLO is made over the bytes that the nonce's digits spell.",
    node: "mesh",
    caughtBy: ["handshake/mac-over-hex-text"],
    plant: (setup) => {
      const secret = setup.env["QUEEN_SYNC_SECRET"] ?? "";
      return rewritingHello(({ server_id, nonce, mac }) => ({
        server_id,
        nonce,
        mac: mac === ""
          ? ""
          : createHmac("sha256", secret).update(Buffer.from(nonce, "hex")).digest("hex"),
      }))(setup);
    },
  },
  {
    name: "mac-over-decoded-nonce-accepted",
    fault: "A mac over the bytes that the nonce's digits spell is let in beside the right one.",
    node: "mesh",
    caughtBy: ["handshake/mac-over-decoded-bytes-refused"],
    plant: (setup) => {
      const secret = setup.env["QUEEN_SYNC_SECRET"] ?? "";
      return judging((frame, verdict) => {
        const { server_id, nonce, mac } = parsed(frame);
        const decoded = createHmac("sha256", secret)
          .update(Buffer.from(String(nonce), "hex")).digest("hex");
        return mac === decoded && typeof nonce === "string" && secret !== ""
          ? { kind: "accepted", serverId: String(server_id) }
          : verdict;
      })(setup);
    },
  },
  {
    name: "plain-hash-for-mac",
    fault: "The mac of its HELLO is a plain SHA-256 of secret and nonce instead of an HMAC.",
    node: "mesh",
    caughtBy: ["handshake/mac-over-hex-text"],
    plant: (setup) => {
      const secret = setup.env["QUEEN_SYNC_SECRET"] ?? "";
      return rewritingHello(({ server_id, nonce, mac }) => ({
        server_id,
        nonce,
        mac: mac === "" ? "" : createHash("sha256").update(secret + nonce).digest("hex"),
      }))(setup);
    },
  },
  {
    name: "nonce-reused",
    fault: "Every connection has the same nonce.",
    node: "mesh",
    caughtBy: ["handshake/nonce-fresh"],
    plant: (setup) => ({
      ...setup,
      runtime: { ...setup.runtime, random: (bytes) => bytes.fill(7) },
    }),
  },
  {
    name: "nonce-in-uppercase",
    fault: "The nonce of its HELLO is written in uppercase digits; the mac fits it.",
    node: "mesh",
    caughtBy: ["handshake/nonce-format"],
    mayFail: ["handshake/mac-empty-in-open-mode"],
    plant: (setup) => {
      const secret = setup.env["QUEEN_SYNC_SECRET"] ?? "";
      return rewritingHello(({ server_id, nonce, mac }) => {
        const upper = nonce.toUpperCase();
        const fitting = createHmac("sha256", secret).update(upper).digest("hex");
        return { server_id, nonce: upper, mac: mac === "" ? "" : fitting };
      })(setup);
    },
  },
  {
    name: "mac-compared-in-part",
    fault: "Of the mac only as much is compared as the peer sent: an empty one fits.",
    node: "mesh",
    caughtBy: ["handshake/mac-cut-short-refused", "handshake/mac-empty-refused"],
    plant: (setup) => {
      const secret = setup.env["QUEEN_SYNC_SECRET"] ?? "";
      return judging((frame, verdict) => {
        const { server_id, nonce, mac } = parsed(frame);
        const isWhole = [mac, nonce, server_id].every((each) => typeof each === "string");
        if (frame.type !== HELLO || !isWhole || server_id === "") return verdict;
        return createHmac("sha256", secret).update(String(nonce)).digest("hex").startsWith(
            String(mac),
          )
          ? { kind: "accepted", serverId: String(server_id) }
          : verdict;
      })(setup);
    },
  },
  {
    name: "open-mode-checks-mac",
    fault: "In open mode a HELLO with a mac is refused.",
    node: "mesh",
    caughtBy: ["handshake/open-mode-accepts-any-mac"],
    plant: (setup) =>
      setup.env["QUEEN_SYNC_SECRET"]
        ? setup
        : judging((frame, verdict) =>
          parsed(frame)["mac"] ? { kind: "refused", reason: "a mac in open mode" } : verdict
        )(setup),
  },
  {
    name: "server-id-optional",
    fault: "A HELLO without a usable server_id is let in under a made-up one.",
    node: "mesh",
    caughtBy: [
      "handshake/server-id-missing",
      "handshake/server-id-empty",
      "handshake/server-id-not-a-string",
      "handshake/open-mode-needs-server-id",
    ],
    plant: (setup) => {
      const mac = createMac(setup.env["QUEEN_SYNC_SECRET"] ?? "");
      return withParts({
        createHandshake: () =>
          new class extends Handshake {
            override judge(frame: Frame): Promise<HandshakeVerdict> {
              const { server_id, ...rest } = parsed(frame);
              const id = typeof server_id === "string" && server_id !== "" ? server_id : "unnamed";
              const isObject = frame.type === HELLO && frame.payload[0] === 0x7b;
              return super.judge(
                isObject ? decoded(frame.type, { ...rest, server_id: id }) : frame,
              );
            }
          }({ mac }),
      })(setup);
    },
  },
  {
    name: "nonce-optional",
    fault: "A HELLO without a nonce is taken as one with an empty nonce.",
    node: "mesh",
    caughtBy: ["handshake/nonce-missing"],
    plant: (setup) => {
      const secret = setup.env["QUEEN_SYNC_SECRET"] ?? "";
      return judging((frame, verdict) => {
        const { server_id, nonce, mac } = parsed(frame);
        return nonce === undefined && mac === createHmac("sha256", secret).update("").digest("hex")
          ? { kind: "accepted", serverId: String(server_id) }
          : verdict;
      })(setup);
    },
  },
  {
    name: "uppercase-mac-refused",
    fault: "A mac in uppercase hex is refused.",
    node: "mesh",
    caughtBy: ["handshake/uppercase-mac"],
    plant: judging((frame, verdict) =>
      /[A-F]/.test(String(parsed(frame)["mac"]))
        ? { kind: "refused", reason: "uppercase" }
        : verdict
    ),
  },
  {
    name: "answers-on-accepted-connection",
    fault: "It says HELLO back on connections that it accepted.",
    node: "mesh",
    caughtBy: ["handshake/listener-silent"],
    mayFail: ["topology/two-connections"],
    plant: (setup) => {
      const secret = setup.env["QUEEN_SYNC_SECRET"] ?? "";
      return withAccepted((connection) =>
        rewritingReads(connection, async ({ type, payload, bytes, position }) => {
          const isRight = type === HELLO && (secret === "" || isSigned(payload, secret));
          const { server_id: id } = parsed({ type, payload });
          if (position === 0 && isRight && typeof id === "string" && id !== "") {
            await writeAll(connection, encodeFrame(HELLO, '{"server_id":"me"}'));
          }
          return bytes;
        })
      )(setup);
    },
  },
  {
    name: "refusal-answered",
    fault: "A refused HELLO is answered before the connection is closed.",
    node: "mesh",
    caughtBy: ["handshake/wrong-secret-refused", "handshake/mac-missing"],
    mayFail: ["handshake"],
    plant: (setup) => {
      const secret = setup.env["QUEEN_SYNC_SECRET"] ?? "";
      return withAccepted((connection) =>
        rewritingReads(connection, async ({ type, payload, bytes, position }) => {
          if (position === 0 && (type !== HELLO || !isSigned(payload, secret))) {
            await writeAll(connection, encodeFrame(99, '{"error":"refused"}'));
          }
          return bytes;
        })
      )(setup);
    },
  },
  {
    name: "refusals-uncounted",
    fault: "Failed handshakes are not counted.",
    node: "mesh",
    caughtBy: [
      "handshake/wrong-secret-refused",
      "handshake/mac-not-hex",
      "handshake/first-frame-other-type",
    ],
    mayFail: ["handshake", "observing/signature-failures-equal"],
    plant: withStats((stats) =>
      stats["enabled"] ? { ...stats, handshake_failures: 0, signature_failures: 0 } : stats
    ),
  },
  {
    name: "second-hello-closes",
    fault: "A second HELLO ends the connection.",
    node: "mesh",
    caughtBy: ["handshake/second-hello-ignored"],
    mayFail: ["handshake/listener-silent", "framing", "liveness"],
    plant: withAccepted((connection) =>
      rewritingReads(connection, ({ type, bytes, position }) => {
        if (type !== HELLO || position === 0) return bytes;
        connection.close();
        return NOTHING;
      })
    ),
  },
];

/** Changes verdicts. */
function judging(
  change: (frame: Frame, verdict: HandshakeVerdict) => HandshakeVerdict,
): Plant {
  return withParts({
    createHandshake: (options) =>
      new class extends Handshake {
        override async judge(frame: Frame): Promise<HandshakeVerdict> {
          const copy = { type: frame.type, payload: frame.payload.slice() };
          return change(copy, await super.judge(frame));
        }
      }(options),
  });
}

/** Changes the HELLO that it says. */
function rewritingHello(
  change: (hello: { server_id: string; nonce: string; mac: string }) => unknown,
): Plant {
  return withDialled((connection) =>
    rewritingWrites(
      connection,
      ({ type, payload, bytes }) =>
        type === HELLO
          ? encodeFrame(HELLO, JSON.stringify(change(JSON.parse(payload.toString()))))
          : bytes,
    )
  );
}

function parsed({ payload }: Frame): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(Buffer.from(payload).toString());
    return typeof json === "object" && json !== null ? json as Record<string, unknown> : {};
  } catch {
    return {};
  }
}

function decoded(type: number, hello: unknown): Frame {
  return { type, payload: Buffer.from(JSON.stringify(hello)) };
}

function isSigned(payload: Uint8Array, secret: string): boolean {
  const { nonce, mac, server_id } = parsed({ type: HELLO, payload });
  if (typeof mac !== "string" || typeof nonce !== "string" || !server_id) return false;
  const expected = Buffer.from(createHmac("sha256", secret).update(nonce).digest("hex"));
  const given = Buffer.from(mac.toLowerCase());
  return given.length === expected.length && timingSafeEqual(given, expected);
}
