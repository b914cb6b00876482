import type { Clock, Timer } from "../../mesh/runtime.ts";
import { ApiError } from "./api_error.ts";

/** A body that sends nothing for this long is given up, in milliseconds. */
export const BODY_IDLE_MS_MAX = 30_000;

/** So many bodies of the greatest size may be in flight at a time. */
export const BODIES_IN_FLIGHT = 4;

/** What a {@linkcode BodyReader} is made of. */
export interface BodyReaderOptions {
  /** Time. */
  readonly clock: Clock;
  /** The greatest body, in bytes. */
  readonly bytesMax: number;
}

/** Reads request bodies, each one and all of them together bounded. */
export class BodyReader {
  readonly #clock: Clock;
  readonly #bytesMax: number;
  readonly #inFlightBytesMax: number;
  readonly #reading = new Set<ReadableStreamDefaultReader<Uint8Array>>();
  #inFlightBytes = 0;
  #isClosed = false;

  /** Makes a reader with nothing in flight. */
  constructor({ clock, bytesMax }: BodyReaderOptions) {
    this.#clock = clock;
    this.#bytesMax = bytesMax;
    this.#inFlightBytesMax = bytesMax * BODIES_IN_FLIGHT;
  }

  /** The bytes of the bodies that are read or used now. */
  get inFlightBytes(): number {
    return this.#inFlightBytes;
  }

  /**
   * Reads a body as UTF-8 and gives it to `use`. It counts as in flight until that has ended.
   *
   * Rejects with an {@linkcode ApiError}: 413 where the body is too large, 503 where too much is in
   * flight, 408 where it does not arrive, 400 where it is no UTF-8 or breaks off.
   */
  async read<T>(request: Request, use: (text: string) => T | Promise<T>): Promise<T> {
    // A number that is no number is none of our business: the bytes are counted anyway.
    if (Number(request.headers.get("content-length")) > this.#bytesMax) throw this.#tooLarge();
    const charge = { bytes: 0 };
    try {
      return await use(await this.#readText(request, charge));
    } finally {
      this.#inFlightBytes -= charge.bytes;
    }
  }

  /** Gives up every body that is still being read. Those to come are refused. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#reading) cancel(reader);
  }

  async #readText(request: Request, charge: { bytes: number }): Promise<string> {
    if (request.body === null) return "";
    const reader = request.body.getReader();
    if (this.#isClosed) {
      cancel(reader);
      throw new ApiError(503, "the replica is stopping");
    }
    this.#reading.add(reader);
    try {
      return await this.#drain(reader, charge);
    } catch (error) {
      cancel(reader);
      throw error;
    } finally {
      this.#reading.delete(reader);
    }
  }

  async #drain(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    charge: { bytes: number },
  ): Promise<string> {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    let text = "";
    for (;;) {
      const { done, value } = await this.#readChunk(reader);
      if (done) return text + decode(decoder);
      charge.bytes += value.byteLength;
      this.#inFlightBytes += value.byteLength;
      if (charge.bytes > this.#bytesMax) throw this.#tooLarge();
      if (this.#inFlightBytes > this.#inFlightBytesMax) {
        throw new ApiError(503, "too many request bodies are in flight; try again later");
      }
      text += decode(decoder, value);
    }
  }

  async #readChunk(
    reader: ReadableStreamDefaultReader<Uint8Array>,
  ): Promise<ReadableStreamReadResult<Uint8Array>> {
    let isLate = false;
    const timer: Timer = this.#clock.setTimer(BODY_IDLE_MS_MAX, () => {
      isLate = true;
      cancel(reader);
    });
    try {
      const result = await reader.read();
      if (isLate) throw new ApiError(408, `the body stopped for ${BODY_IDLE_MS_MAX} ms`);
      if (result.done && this.#isClosed) throw new ApiError(503, "the replica is stopping");
      return result;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw new ApiError(400, "the body broke off");
    } finally {
      timer.cancel();
    }
  }

  #tooLarge(): ApiError {
    return new ApiError(413, `the body is larger than ${this.#bytesMax} bytes`);
  }
}

function decode(decoder: TextDecoder, bytes?: Uint8Array): string {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
  } catch {
    throw new ApiError(400, "the body is not valid UTF-8");
  }
}

/** Tells the source that nobody reads on. It may have failed already, which changes nothing. */
function cancel(reader: ReadableStreamDefaultReader<Uint8Array>): void {
  reader.cancel().catch(() => {});
}
