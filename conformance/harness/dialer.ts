import { connect, type Socket } from "node:net";
import { describeBytes, describeSent } from "./frame.ts";
import { HarnessError } from "./failure.ts";
import type { Recorder } from "./transcript.ts";

/** Where a {@linkcode PeerDialer} goes. */
export interface DialOptions {
  /** A host name or address. */
  readonly host: string;
  /** A port. */
  readonly port: number;
  /** What the transcript calls it. */
  readonly label: string;
  /** Takes what happens. */
  readonly record: Recorder;
  /** Gives up the connection attempt. */
  readonly signal: AbortSignal;
}

/** The suite as a peer that dials: it sends any bytes and sees what becomes of the connection. */
export class PeerDialer {
  readonly #socket: Socket;
  readonly #options: DialOptions;
  readonly #ended: Promise<void>;
  #receivedBytes = 0;
  #hasEnded = false;

  private constructor(socket: Socket, options: DialOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#ended = new Promise((resolve) => {
      const end = (how: string) => {
        if (this.#hasEnded) return;
        this.#hasEnded = true;
        this.#record(how);
        resolve();
      };
      socket.on("data", (chunk: Uint8Array) => {
        this.#receivedBytes += chunk.length;
        this.#record(`<- ${describeBytes(chunk)} on a connection that the node accepted`);
      });
      socket.once("end", () => end("the node ended the connection"));
      socket.once("error", (error) => end(`the connection broke: ${error.message}`));
      socket.once("close", () => end("the connection is closed"));
    });
  }

  /**
   * Connects.
   *
   * @throws {HarnessError} If nothing accepts the connection.
   */
  static connect(options: DialOptions): Promise<PeerDialer> {
    const { host, port, label, signal } = options;
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true, allowHalfOpen: true });
      const fail = (why: string) => {
        signal.removeEventListener("abort", abort);
        socket.destroy();
        reject(new HarnessError(`${label}: no connection to ${host}:${port}: ${why}`));
      };
      const failed = (error: Error) => fail(error.message);
      const abort = () => fail("it was given up");
      socket.once("error", failed);
      signal.addEventListener("abort", abort, { once: true });
      socket.once("connect", () => {
        signal.removeEventListener("abort", abort);
        socket.off("error", failed);
        const dialer = new PeerDialer(socket, options);
        dialer.#record(`connected to ${host}:${port}`);
        resolve(dialer);
      });
    });
  }

  /** How many bytes the node sent here; HSK-10 wants none. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** Whether the node has ended the connection. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Resolves when the node ends the connection, in whatever way. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /**
   * Sends bytes. Resolves when the kernel has taken them, or when the connection has ended: that
   * the node hangs up in the middle is for the case to judge.
   */
  async send(...parts: readonly Uint8Array[]): Promise<void> {
    for (const bytes of parts) {
      this.#record(`-> ${describeSent(bytes)}`);
      if (this.#socket.destroyed || this.#socket.writableEnded) return;
      await Promise.race([
        new Promise<void>((resolve) => this.#socket.write(bytes, () => resolve())),
        this.#ended,
      ]);
    }
  }

  /** Ends the stream after what was sent; the other direction stays open. */
  end(): void {
    this.#record("ended the stream");
    this.#socket.end();
  }

  /** Closes the connection at once. Calling it twice is harmless. */
  destroy(): void {
    this.#hasEnded = true;
    this.#socket.destroy();
  }

  #record(line: string): void {
    this.#options.record(`${this.#options.label} ${line}`);
  }
}
