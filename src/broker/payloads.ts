import { Buffer } from "node:buffer";
import type { Cipher } from "./spool/cipher.ts";

/** Between the key's id and the sealed bytes. */
const SEPARATOR = ":";

/** A stored payload cannot be opened. Its message says why and nothing of the payload. */
export class SealedPayloadError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "SealedPayloadError";
}

/** What is said where a key is needed and there is none. */
export const NO_KEY =
  "encryption needs a key: set QUEEN_ENCRYPTION_KEY to the same 64 hex digits on every replica";

/**
 * Payloads of queues that are stored encrypted: the id of the key, a colon, and the sealed JSON text in
 * base64.
 */
export class Payloads {
  readonly #cipher: Cipher | undefined;

  /** @param cipher Without one nothing can be sealed or opened. */
  constructor(cipher: Cipher | undefined) {
    this.#cipher = cipher;
  }

  /** Whether payloads can be sealed. */
  get hasKey(): boolean {
    return this.#cipher !== undefined;
  }

  /**
   * Seals a payload.
   *
   * @throws {Error} Where there is no key.
   */
  async seal(payload: string): Promise<string> {
    if (this.#cipher === undefined) throw new Error(NO_KEY);
    const sealed = await this.#cipher.seal(new TextEncoder().encode(payload));
    return this.#cipher.keyId + SEPARATOR + Buffer.from(sealed).toString("base64");
  }

  /**
   * Opens what {@linkcode Payloads.seal | seal} gave.
   *
   * @throws {SealedPayloadError} Where it cannot be opened with the key of this process.
   */
  async open(stored: string): Promise<string> {
    if (this.#cipher === undefined) throw new SealedPayloadError(NO_KEY);
    const [keyId, text = ""] = stored.split(SEPARATOR);
    if (keyId !== this.#cipher.keyId) {
      throw new SealedPayloadError("the message was encrypted with another QUEEN_ENCRYPTION_KEY");
    }
    try {
      const plain = await this.#cipher.open(new Uint8Array(Buffer.from(text, "base64")));
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(plain);
    } catch (cause) {
      throw new SealedPayloadError("the encrypted message is damaged", { cause });
    }
  }
}
