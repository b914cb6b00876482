/**
 * The handshake: what a dialer says of itself, and whether a listener believes it.
 *
 * @module
 */

import { checkNonEmpty, checkString } from "./check.ts";
import { encodeFrame, type Frame, FRAME_TYPE } from "./frame.ts";
import { decodeHex, encodeHex } from "./hex.ts";
import { parseObject } from "./json.ts";

/** The random bytes of a nonce. */
const NONCE_BYTES = 16;

/** What a HELLO carries. */
export interface Hello {
  /** The dialer's id, not empty. */
  readonly serverId: string;
  /** 32 lowercase hex digits, fresh for each connection (HSK-1). */
  readonly nonce: string;
  /** The lowercase hex of the nonce's mac, `""` in open mode (HSK-2). */
  readonly mac: string;
}

/** Computes the HMAC-SHA256 of a nonce's text, keyed by a secret that it holds: 32 bytes. */
export type Mac = (nonce: string) => Promise<Uint8Array>;

/** What goes into a HELLO that {@linkcode buildHello} signs. */
export interface HelloOptions {
  /** The dialer's id, not empty. */
  readonly serverId: string;
  /** A nonce made by {@linkcode createNonce}. */
  readonly nonce: string;
  /** What signs the nonce; `undefined` in open mode. */
  readonly mac: Mac | undefined;
}

/** What a listener makes of a connection's first frame. */
export type HelloVerdict =
  | {
    readonly ok: true;
    /** The id that the dialer announced, not empty and otherwise any text. */
    readonly serverId: string;
    /** The nonce; in open mode `undefined` where it is empty or not a string. */
    readonly nonce: string | undefined;
  }
  | {
    readonly ok: false;
    /** Why the connection has to be closed: one of a few fixed phrases. */
    readonly reason: string;
  };

/**
 * Makes the function that signs nonces by a shared secret (HSK-2).
 *
 * @param secret The secret; its UTF-8 bytes are the key.
 * @returns The function, or `undefined` for the empty secret: open mode. The key is imported once.
 */
export function createMac(secret: string): Mac | undefined {
  if (secret === "") return undefined;
  const utf8 = new TextEncoder();
  let key: Promise<CryptoKey> | undefined;
  return async (nonce) => {
    key ??= crypto.subtle.importKey(
      "raw",
      utf8.encode(secret),
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["sign"],
    );
    return new Uint8Array(await crypto.subtle.sign("HMAC", await key, utf8.encode(nonce)));
  };
}

/**
 * Makes a nonce of 32 lowercase hex digits (HSK-1).
 *
 * @param random Fills an array with random bytes and returns it.
 *
 * @example
 * ```ts
 * import { createNonce } from "@queen/mesh";
 * import assert from "node:assert/strict";
 *
 * assert.match(createNonce((bytes) => crypto.getRandomValues(bytes)), /^[0-9a-f]{32}$/);
 * ```
 */
export function createNonce(
  random: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>,
): string {
  return encodeHex(random(new Uint8Array(NONCE_BYTES)));
}

/**
 * Encodes a HELLO as it is given.
 *
 * @returns The complete frame.
 * @throws {TypeError} Where a field is not a string, or the id is empty.
 * @throws {RangeError} Where the frame would exceed 16 MiB.
 */
export function encodeHello(hello: Hello): Uint8Array<ArrayBuffer> {
  const payload = {
    server_id: checkNonEmpty("serverId", hello.serverId),
    nonce: checkString("nonce", hello.nonce),
    mac: checkString("mac", hello.mac),
  };
  return encodeFrame(FRAME_TYPE.HELLO, JSON.stringify(payload));
}

/**
 * Signs and encodes a HELLO.
 *
 * @returns The complete frame, which has to be the first one on a connection.
 * @throws {TypeError} As {@linkcode encodeHello} does.
 *
 * @example
 * ```ts
 * import { buildHello, createMac, FrameDecoder, verifyHello } from "@queen/mesh";
 * import assert from "node:assert/strict";
 *
 * const mac = createMac("a secret");
 * const nonce = "000102030405060708090a0b0c0d0e0f";
 * const decoder = new FrameDecoder();
 * decoder.push(await buildHello({ serverId: "node-a", nonce, mac }));
 * const frame = decoder.next();
 * assert(frame !== undefined);
 * assert.deepEqual(await verifyHello(frame, mac), { ok: true, serverId: "node-a", nonce });
 * ```
 */
export async function buildHello(options: HelloOptions): Promise<Uint8Array<ArrayBuffer>> {
  const { serverId, nonce, mac } = options;
  return encodeHello({
    serverId,
    nonce,
    mac: mac === undefined ? "" : encodeHex(await mac(nonce)),
  });
}

/**
 * Verifies the first frame of an accepted connection (HSK-4, HSK-6, HSK-7).
 *
 * A mac is compared in constant time (HSK-3) and may be in uppercase. In open mode any nonce and mac
 * pass, of any type. Whether the nonce was seen before is for the caller to know.
 *
 * @param frame The frame; its payload is read before the call returns its promise.
 * @param mac What signs nonces; `undefined` in open mode.
 */
export async function verifyHello(frame: Frame, mac: Mac | undefined): Promise<HelloVerdict> {
  if (frame.type !== FRAME_TYPE.HELLO) return refuse("the first frame is not a HELLO");
  const payload = parseObject(frame.payload);
  if (payload === undefined) return refuse("the HELLO is not a JSON object");
  const { server_id: serverId, nonce, mac: claimed } = payload;
  if (serverId === undefined) return refuse("the HELLO has no server_id");
  if (typeof serverId !== "string") return refuse("the HELLO's server_id is not a string");
  if (serverId === "") return refuse("the HELLO's server_id is empty");
  if (mac === undefined) return { ok: true, serverId, nonce: isText(nonce) ? nonce : undefined };
  if (!isText(nonce)) return refuse("the HELLO has no nonce");
  if (!isText(claimed)) return refuse("the HELLO has no mac: its sender has no secret");
  const claimedBytes = decodeHex(claimed);
  if (claimedBytes === undefined) return refuse("the HELLO's mac is not hex");
  if (!equalInConstantTime(claimedBytes, await mac(nonce))) {
    return refuse("the HELLO's mac does not match: the secrets differ");
  }
  return { ok: true, serverId, nonce };
}

function refuse(reason: string): HelloVerdict {
  return { ok: false, reason };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Compares every byte, wherever the first difference lies. Lengths are no secret. */
function equalInConstantTime(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!;
  return difference === 0;
}
