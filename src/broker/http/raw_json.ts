/**
 * Reads of a JSON text only what is asked for, and keeps payloads as the text that they are.
 *
 * `JSON.parse` loses what a payload's text says beyond its value (large integers, escapes, the order
 * and repetition of keys), and a hostile body of 64 MiB makes gigabytes of objects. Here the whole
 * text is validated, and only what the shape names becomes values.
 *
 * @module
 */

/**
 * What to make of a value: a `scalar` becomes a string, number, boolean or null; `raw` stays
 * the text that it is. Of an object, the members that are named;
 * of an array, its elements. An array or object where the shape has none becomes an empty one.
 */
export type Shape =
  | "scalar"
  | "raw"
  | { readonly members: Readonly<Record<string, Shape>> }
  | { readonly elements: Shape; readonly countMax: number };

/** A value as its own JSON text, without white space around it. */
export class RawJson {
  /** The text. */
  readonly text: string;

  /** Wraps valid JSON text. */
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Reads a JSON text. Where an object has a key twice the last one counts, as in `JSON.parse`.
 *
 * @throws {SyntaxError} where the text is no JSON, whichever part of it.
 * @throws {RangeError} where an array has more elements than its shape allows.
 */
export function readJson(text: string, shape: Shape): unknown {
  const reader = new Reader(text);
  reader.skipSpace();
  const value = reader.read(shape);
  reader.skipSpace();
  if (reader.at < text.length) reader.fail();
  return value;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const ESCAPED = new Set('"\\/bfnrt');
const HEX4 = /^[0-9a-fA-F]{4}$/;

class Reader {
  readonly #text: string;
  /** The position of the next character. */
  at = 0;
  /** Which containers are open while a value is skipped, by their closing characters. */
  #open = new Uint8Array(64);

  constructor(text: string) {
    this.#text = text;
  }

  read(shape: Shape): unknown {
    if (shape === "raw") return new RawJson(this.#skipped());
    const code = this.#text.charCodeAt(this.at);
    if (code === OPEN_OBJECT) {
      if (typeof shape === "object" && "members" in shape) return this.#readObject(shape.members);
      this.#skipValue();
      return {};
    }
    if (code === OPEN_ARRAY) {
      if (typeof shape === "object" && "elements" in shape) return this.#readArray(shape);
      this.#skipValue();
      return [];
    }
    return JSON.parse(this.#skipped());
  }

  skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at++;
    }
  }

  fail(): never {
    const { at } = this;
    if (at >= this.#text.length) throw new SyntaxError("unexpected end");
    const character = JSON.stringify(String.fromCodePoint(this.#text.codePointAt(at) ?? 0));
    throw new SyntaxError(`unexpected ${character} at position ${at}`);
  }

  #readObject(members: Readonly<Record<string, Shape>>): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    if (this.#opens(CLOSE_OBJECT)) return result;
    do {
      const key = this.#readKey();
      if (Object.hasOwn(members, key)) result[key] = this.read(members[key]!);
      else this.#skipValue();
    } while (this.#continues(CLOSE_OBJECT));
    return result;
  }

  #readArray({ elements, countMax }: { elements: Shape; countMax: number }): unknown[] {
    const result: unknown[] = [];
    if (this.#opens(CLOSE_ARRAY)) return result;
    do {
      if (result.length === countMax) throw new RangeError(`at most ${countMax} are allowed`);
      result.push(this.read(elements));
    } while (this.#continues(CLOSE_ARRAY));
    return result;
  }

  /** Enters a container; true where it is empty, and so left again. */
  #opens(close: number): boolean {
    this.at++;
    this.skipSpace();
    if (this.#text.charCodeAt(this.at) !== close) return false;
    this.at++;
    return true;
  }

  /** After an element: true where another one follows, false where the container is left. */
  #continues(close: number): boolean {
    this.skipSpace();
    const code = this.#text.charCodeAt(this.at);
    if (code !== COMMA && code !== close) this.fail();
    this.at++;
    if (code === close) return false;
    this.skipSpace();
    return true;
  }

  #readKey(): string {
    const start = this.at;
    const end = this.#skipKey();
    const token = this.#text.slice(start, end);
    return token.includes("\\") ? JSON.parse(token) : token.slice(1, -1);
  }

  /** Skips a key and its colon, up to the value. Returns where the key ended. */
  #skipKey(): number {
    if (this.#text.charCodeAt(this.at) !== QUOTE) this.fail();
    this.#skipString();
    const end = this.at;
    this.skipSpace();
    if (this.#text.charCodeAt(this.at) !== COLON) this.fail();
    this.at++;
    this.skipSpace();
    return end;
  }

  #skipped(): string {
    const start = this.at;
    this.#skipValue();
    return this.#text.slice(start, this.at);
  }

  /** Skips a value of any depth, without recursion. */
  #skipValue(): void {
    let depth = 0;
    for (;;) {
      const code = this.#text.charCodeAt(this.at);
      if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
        const close = code === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY;
        if (!this.#opens(close)) {
          if (depth === this.#open.length) this.#grow();
          this.#open[depth++] = close;
          if (close === CLOSE_OBJECT) this.#skipKey();
          continue;
        }
      } else {
        this.#skipScalar(code);
      }
      while (depth > 0 && !this.#continues(this.#open[depth - 1]!)) depth--;
      if (depth === 0) return;
      if (this.#open[depth - 1] === CLOSE_OBJECT) this.#skipKey();
    }
  }

  #grow(): void {
    const open = new Uint8Array(this.#open.length * 2);
    open.set(this.#open);
    this.#open = open;
  }

  #skipScalar(code: number): void {
    if (code === QUOTE) this.#skipString();
    else if (code === MINUS || isDigit(code)) this.#skipNumber();
    else if (!this.#skipWord("true") && !this.#skipWord("false") && !this.#skipWord("null")) {
      this.fail();
    }
  }

  #skipWord(word: string): boolean {
    if (!this.#text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  #skipString(): void {
    const text = this.#text;
    for (;;) {
      const code = text.charCodeAt(++this.at);
      if (code === QUOTE) break;
      if (code === BACKSLASH) this.#skipEscape();
      // Not a number at the end of the text.
      else if (!(code >= 0x20)) this.fail();
    }
    this.at++;
  }

  /** From the backslash to the escape's last character. */
  #skipEscape(): void {
    const character = this.#text.charAt(++this.at);
    if (ESCAPED.has(character)) return;
    if (character !== "u" || !HEX4.test(this.#text.slice(this.at + 1, this.at + 5))) this.fail();
    this.at += 4;
  }

  #skipNumber(): void {
    if (this.#text.charCodeAt(this.at) === MINUS) this.at++;
    if (this.#text.charAt(this.at) === "0") this.at++;
    else this.#skipDigits();
    if (this.#text.charAt(this.at) === ".") {
      this.at++;
      this.#skipDigits();
    }
    const exponent = this.#text.charAt(this.at);
    if (exponent !== "e" && exponent !== "E") return;
    const sign = this.#text.charAt(++this.at);
    if (sign === "+" || sign === "-") this.at++;
    this.#skipDigits();
  }

  /** At least one. */
  #skipDigits(): void {
    if (!isDigit(this.#text.charCodeAt(this.at))) this.fail();
    while (isDigit(this.#text.charCodeAt(this.at))) this.at++;
  }
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
