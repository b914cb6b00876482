/**
 * Messages as frames, written into one buffer that is used again.
 *
 * @module
 */

import { BATCH_FRAME_BYTES_MAX, batchText, groupByBytes } from "./batch.ts";
import { show } from "./check.ts";
import { encodeFrame, FRAME_HEADER_BYTES, FRAME_TYPE, writeFrameHeader } from "./frame.ts";
import {
  configText,
  dirtyHintText,
  heartbeatText,
  hintText,
  modeText,
  toTexts,
} from "./message_text.ts";
import type { OutgoingMessage } from "./messages.ts";

const UTF8 = new TextEncoder();

/**
 * Encodes messages into frames. It writes into one buffer of its own, so a frame is valid only
 * during the call of `emit` that gives it, and `emit` must not call the writer.
 *
 * @example
 * ```ts
 * import { FrameWriter } from "@queen/mesh";
 * import assert from "node:assert/strict";
 *
 * const frames: Uint8Array[] = [];
 * const message = { type: "message_available", items: [{ queue: "orders" }] } as const;
 * const count = new FrameWriter().encode(message, (frame) => frames.push(frame.slice()));
 * assert.equal(count, 1);
 * assert.equal(
 *   new TextDecoder().decode(frames[0]?.subarray(5)),
 *   '{"queue":"orders","partition":"","tenant":"00000000-0000-0000-0000-000000000001"}',
 * );
 * ```
 */
export class FrameWriter {
  readonly #scratch = new Uint8Array(BATCH_FRAME_BYTES_MAX);
  readonly #body = this.#scratch.subarray(FRAME_HEADER_BYTES);

  /**
   * Encodes one message. Items that fit into 1 MiB share a frame, so a large batch gives several
   * (FRM-12); an item that is larger by itself gets a frame of its own, up to 16 MiB. A frame of one
   * available partition has type 1, one of several has type 2.
   *
   * @param message What to say. A batch without items gives no frame.
   * @param emit Called with each complete frame in turn.
   * @returns How many frames there were.
   * @throws {TypeError} Where a field has the wrong type, a tenant is no UUID, or the queue of a hint
   * is empty. Nothing has been emitted then.
   * @throws {RangeError} Where one item alone exceeds 16 MiB. Nothing has been emitted then.
   */
  encode(message: OutgoingMessage, emit: (frame: Uint8Array) => void): number {
    switch (message.type) {
      case "message_available":
        return this.writeHints(toTexts(message.items, hintText), emit);
      case "hotlist_dirty":
        return this.#writeDirtyHints(toTexts(message.items, dirtyHintText), emit);
      case "queue_config_set":
        return this.#write(FRAME_TYPE.QUEUE_CONFIG_SET, configText(message), emit);
      case "queue_config_delete":
        return this.#write(FRAME_TYPE.QUEUE_CONFIG_DELETE, configText(message), emit);
      case "maintenance_mode":
        return this.#write(FRAME_TYPE.MAINTENANCE_MODE_SET, modeText(message), emit);
      case "pop_maintenance_mode":
        return this.#write(FRAME_TYPE.POP_MAINTENANCE_MODE_SET, modeText(message), emit);
      default:
        throw new TypeError(
          `type must name a message, got ${show((message as { type: unknown }).type)}`,
        );
    }
  }

  /**
   * Encodes the sign of life that keeps this node alive in its peers' eyes (SND-5).
   *
   * @param serverId The sender's id, not empty.
   * @param emit Called with the complete frame.
   * @returns 1, the count of frames.
   * @throws {TypeError} Where the id is empty or not a string.
   * @throws {RangeError} Where the frame would exceed 16 MiB.
   */
  heartbeat(serverId: string, emit: (frame: Uint8Array) => void): number {
    return this.#write(FRAME_TYPE.HEARTBEAT, heartbeatText(serverId), emit);
  }

  /**
   * Encodes available partitions that {@linkcode hintText} has made into text before, so that they
   * can be gathered and compared. Frames are made as {@linkcode FrameWriter.encode | encode} does.
   *
   * @param texts Texts made by {@linkcode hintText}, and no others: they are not looked into.
   * @param emit Called with each complete frame in turn.
   * @returns How many frames there were.
   */
  writeHints(texts: Iterable<string>, emit: (frame: Uint8Array) => void): number {
    const groups = groupByBytes([...texts]);
    for (const group of groups) {
      const [only = ""] = group;
      if (group.length === 1) this.#write(FRAME_TYPE.MESSAGE_AVAILABLE, only, emit);
      else this.#write(FRAME_TYPE.MESSAGE_AVAILABLE_BATCH, batchText(group), emit);
    }
    return groups.length;
  }

  #writeDirtyHints(texts: readonly string[], emit: Emit): number {
    const groups = groupByBytes(texts);
    for (const group of groups) this.#write(FRAME_TYPE.HOTLIST_DIRTY_BATCH, batchText(group), emit);
    return groups.length;
  }

  #write(type: number, text: string, emit: Emit): number {
    const { read, written } = UTF8.encodeInto(text, this.#body);
    if (read < text.length) {
      // Too large for the buffer, which a single item rarely is: not worth a larger one.
      emit(encodeFrame(type, text));
      return 1;
    }
    writeFrameHeader(this.#scratch, { type, payloadBytes: written });
    emit(this.#scratch.subarray(0, FRAME_HEADER_BYTES + written));
    return 1;
  }
}

type Emit = (frame: Uint8Array) => void;
