/** Something that the demo claims did not happen. Its message says what, in a line. */
export class DemoFailure extends Error {
  /** The name by which a log shows it. */
  override readonly name = "DemoFailure";
}

/** A signal asked the demo to end. */
export class Interrupted extends Error {
  /** The name by which a log shows it. */
  override readonly name = "Interrupted";
  /** The number of the signal. */
  readonly signalNumber: number;

  /** Names the signal. */
  constructor(signal: string, signalNumber: number) {
    super(`interrupted by ${signal}`);
    this.signalNumber = signalNumber;
  }
}
