/**
 * A handler that waits for the test.
 *
 * @module
 */

import type { Delivery } from "../../broker/http_seam.ts";
import { within } from "./within.ts";

/** What a handler was called with. */
export interface Begun {
  /** The request. */
  readonly request: Request;
  /** What becomes of the reply. */
  readonly delivery: Delivery;
}

/** One call of a handler, which the test answers. */
export class Call {
  readonly #begun: Promise<Begun>;
  readonly #reply: Promise<Response>;
  #begin!: (call: Begun) => void;
  /** Ends the call. */
  reply!: (response: Response) => void;

  /** Makes a call that has not begun. */
  constructor() {
    this.#begun = new Promise((resolve) => this.#begin = resolve);
    this.#reply = new Promise((resolve) => this.reply = resolve);
  }

  /** The handler, for one call. */
  readonly handler = (request: Request, delivery: Delivery): Promise<Response> => {
    this.#begin({ request, delivery });
    return this.#reply;
  };

  /** Resolves once the handler is called. */
  begun(): Promise<Begun> {
    return within(this.#begun, "the handler is called");
  }
}
