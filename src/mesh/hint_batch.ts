import { hintText, toTexts } from "../protocol/message_text.ts";
import type { OutgoingHint } from "../protocol/messages.ts";

/** Hints that wait for the end of the turn leave early beyond this many characters. */
const CHARACTERS_MAX = 1_048_576;

/** Takes the distinct hints of one turn, as JSON texts, and how many calls had asked for them. */
export type HintSink = (items: ReadonlySet<string>, calls: number) => void;

/**
 * Gathers the wake hints that are asked for in one turn of the event loop, so that they leave
 * together, identical ones once. Bounded: beyond a megabyte they do not wait for the turn's end.
 */
export class HintBatch {
  readonly #sink: HintSink;
  #items = new Set<string>();
  #characters = 0;
  #calls = 0;

  /** Holds nothing yet; `sink` is called with what was gathered. */
  constructor(sink: HintSink) {
    this.#sink = sink;
  }

  /**
   * Takes the hints of one call.
   *
   * @throws {TypeError} Where a hint cannot be sent; then none of the call's hints is taken.
   * @throws {RangeError} Where a hint does not fit into a frame; likewise.
   */
  add(hints: readonly OutgoingHint[]): void {
    const texts = toTexts(hints, hintText);
    if (texts.length === 0) return;
    if (this.#calls === 0) queueMicrotask(() => this.flush());
    this.#calls++;
    for (const text of texts) {
      if (this.#items.has(text)) continue;
      this.#items.add(text);
      this.#characters += text.length;
    }
    if (this.#characters >= CHARACTERS_MAX) this.flush();
  }

  /** Hands on what was gathered, if anything was. */
  flush(): void {
    if (this.#calls === 0) return;
    const items = this.#items;
    const calls = this.#calls;
    this.#items = new Set();
    this.#characters = 0;
    this.#calls = 0;
    this.#sink(items, calls);
  }
}
