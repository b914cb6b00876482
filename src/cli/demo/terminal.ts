import { formatMs } from "./format.ts";

/** Where a {@linkcode Terminal} writes. */
export interface TextOutput {
  /** Whether a person looks at it, so that lines can be rewritten. */
  readonly isTTY?: boolean;
  /** Takes text; a control sequence is written on a terminal alone. */
  write(text: string): unknown;
}

/** How to make a {@linkcode Terminal}. */
export interface TerminalOptions {
  /** Where to write. */
  readonly output: TextOutput;
  /** The environment; a `NO_COLOR` that is not empty turns colours off. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A clock in milliseconds, for how long each step took. */
  readonly now: () => number;
}

/** Replaces the note beside a step that is under way. */
export type Progress = (note: string) => void;

const STYLES = { bold: "1", dim: "2", red: "31", green: "32" } as const;

/** Where the time that a step took stands. */
const TIME_COLUMN = 84;

/** Erases the present line and goes to its beginning. */
const REWRITE = "\r\x1b[2K";

/**
 * Tells a person what happens, a line for each step. On a terminal a step shows its progress while it
 * is under way; elsewhere only whole lines appear, without control sequences.
 */
export class Terminal {
  readonly #output: TextOutput;
  readonly #now: () => number;
  readonly #isLive: boolean;
  readonly #hasColours: boolean;

  /** Looks at where it writes. */
  constructor({ output, env, now }: TerminalOptions) {
    this.#output = output;
    this.#now = now;
    this.#isLive = output.isTTY === true && env["TERM"] !== "dumb";
    this.#hasColours = this.#isLive && !env["NO_COLOR"];
  }

  /** A line of text, or an empty one. */
  line(text = ""): void {
    this.#output.write(text === "" ? "\n" : `  ${text}\n`);
  }

  /** A line that explains. */
  note(text: string): void {
    this.line(this.#paint("dim", text));
  }

  /** A line in red. */
  alarm(text: string): void {
    this.line(this.#paint("red", text));
  }

  /** A headline, with room above it. */
  heading(text: string): void {
    this.#output.write(`\n${this.#paint("bold", text)}\n`);
  }

  /**
   * Shows a step while it is under way and how it ended.
   *
   * @param label What it is about.
   * @param work Does it.
   * @param describe Puts what came of it into words.
   */
  async step<T>(
    label: string,
    work: (progress: Progress) => Promise<T>,
    describe: (result: T) => string,
  ): Promise<T> {
    const since = this.#now();
    const mark = this.#paint("dim", "·");
    this.#show(`${mark} ${label}`);
    try {
      const result = await work((note) =>
        this.#show(`${mark} ${label} ${this.#paint("dim", note)}`)
      );
      const took = formatMs(this.#now() - since);
      const said = describe(result);
      const gap = " ".repeat(Math.max(2, TIME_COLUMN - said.length - took.length));
      this.#finish(`${this.#paint("green", "✓")} ${said}${gap}${this.#paint("dim", took)}`);
      return result;
    } catch (error) {
      this.#finish(`${this.#paint("red", "✗")} ${label}`);
      throw error;
    }
  }

  #show(text: string): void {
    if (this.#isLive) this.#output.write(`${REWRITE}  ${text}`);
  }

  #finish(text: string): void {
    this.#output.write(`${this.#isLive ? REWRITE : ""}  ${text}\n`);
  }

  #paint(style: keyof typeof STYLES, text: string): string {
    return this.#hasColours ? `\x1b[${STYLES[style]}m${text}\x1b[0m` : text;
  }
}
