import type { SpoolFile } from "./file_system.ts";
import {
  type Frame,
  FRAME_HEADER_BYTES,
  frameLength,
  isMarkerAt,
  MARKER_BYTES,
  readFrame,
} from "./frame.ts";

/** So much is read ahead, in bytes. */
const WINDOW_BYTES = 256 * 1024;

/** A stretch of a segment: one record, or bytes in which there is none. */
export interface Piece {
  /** Where it begins, in bytes from the start of the file. */
  readonly offset: number;
  /** Where it ends. */
  readonly end: number;
  /** The record; undefined where the stretch is damaged. */
  readonly frame: Frame | undefined;
}

/** What a {@linkcode SegmentReader} reads. */
export interface SegmentReaderOptions {
  /** The file. The reader does not close it. */
  readonly file: SpoolFile;
  /** What stands before each record. */
  readonly marker: Uint8Array;
  /** Where to begin. */
  readonly offset: number;
  /** Where to stop; a file that is shorter is damaged at its end. */
  readonly end: number;
}

/** Reads the records of a segment, and finds the next one after a damaged stretch. */
export class SegmentReader {
  readonly #file: SpoolFile;
  readonly #marker: Uint8Array;
  readonly #end: number;
  #at: number;
  /** What was read last, and where it stands in the file. */
  #window = new Uint8Array(0);
  #windowAt = 0;

  /** Reads nothing yet. */
  constructor({ file, marker, offset, end }: SegmentReaderOptions) {
    this.#file = file;
    this.#marker = marker;
    this.#at = offset;
    this.#end = end;
  }

  /** The next stretch, or undefined at the end. Rejects where the file cannot be read. */
  async next(): Promise<Piece | undefined> {
    const offset = this.#at;
    if (offset >= this.#end) return undefined;
    let piece = await this.#recordAt(offset);
    if (piece === undefined) {
      // The next record is parsed once more when it is asked for; damage is rare.
      let at = offset;
      do at = await this.#findMarker(at + 1); while (
        at < this.#end && await this.#recordAt(at) === undefined
      );
      piece = { offset, end: at, frame: undefined };
    }
    this.#at = piece.end;
    return piece;
  }

  async #recordAt(offset: number): Promise<Piece | undefined> {
    const header = await this.#bytesAt(offset, FRAME_HEADER_BYTES);
    if (header === undefined || !isMarkerAt(header, 0, this.#marker)) return undefined;
    // A damaged length reaches beyond the end, or gives a sum that does not match.
    const bytes = await this.#bytesAt(offset, frameLength(header));
    const frame = bytes && readFrame(bytes);
    return frame && { offset, end: offset + bytes.length, frame };
  }

  /** Where the next marker stands, from `offset` on; the end where there is none. */
  async #findMarker(offset: number): Promise<number> {
    for (let at = offset; at + MARKER_BYTES <= this.#end;) {
      const length = Math.min(WINDOW_BYTES, this.#end - at);
      const bytes = await this.#bytesAt(at, length);
      if (bytes === undefined) break;
      const last = length - MARKER_BYTES;
      let i = bytes.indexOf(this.#marker[0]!);
      while (i >= 0 && i <= last && !isMarkerAt(bytes, i, this.#marker)) {
        i = bytes.indexOf(this.#marker[0]!, i + 1);
      }
      if (i >= 0 && i <= last) return at + i;
      at += last + 1;
    }
    return this.#end;
  }

  /** `length` bytes from `offset` on, or undefined where the file ends before that. */
  async #bytesAt(offset: number, length: number): Promise<Uint8Array | undefined> {
    if (offset + length > this.#end) return undefined;
    if (offset < this.#windowAt || offset + length > this.#windowAt + this.#window.length) {
      await this.#readWindow(offset, Math.max(length, WINDOW_BYTES));
    }
    const start = offset - this.#windowAt;
    if (start + length > this.#window.length) return undefined;
    return this.#window.subarray(start, start + length);
  }

  async #readWindow(offset: number, length: number): Promise<void> {
    const bytes = new Uint8Array(Math.min(length, this.#end - offset));
    let filled = 0;
    while (filled < bytes.length) {
      const count = await this.#file.read(bytes.subarray(filled), offset + filled);
      if (count === 0) break;
      filled += count;
    }
    this.#window = bytes.subarray(0, filled);
    this.#windowAt = offset;
  }
}
