import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import { frame, FRAME_TYPES } from "./frame.ts";

/** What a HELLO says. */
export interface Hello {
  /** The id that its sender goes by. */
  readonly server_id: unknown;
  /** 32 lowercase hex digits (HSK-1). */
  readonly nonce: unknown;
  /** The proof that its sender knows the secret (HSK-2). */
  readonly mac: unknown;
}

/** A nonce as HSK-1 wants it. */
export function freshNonce(): string {
  return randomBytes(16).toString("hex");
}

/** The mac of HSK-2: over the nonce's hex text; empty without a secret. */
export function macOf(secret: string, nonce: string): string {
  return secret === "" ? "" : createHmac("sha256", secret).update(nonce).digest("hex");
}

/** The mac that HSK-2 warns of: over the bytes that the nonce's digits spell. */
export function macOverDecodedBytes(secret: string, nonce: string): string {
  return createHmac("sha256", secret).update(Buffer.from(nonce, "hex")).digest("hex");
}

/** What a correct HELLO of this sender says, with a fresh nonce. */
export function validHello(secret: string, serverId: string): Record<keyof Hello, string> {
  const nonce = freshNonce();
  return { server_id: serverId, nonce, mac: macOf(secret, nonce) };
}

/** A HELLO frame. */
export function helloFrame(hello: unknown): Uint8Array {
  return frame(FRAME_TYPES.HELLO, hello);
}
