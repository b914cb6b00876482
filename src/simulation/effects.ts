/**
 * What messages do to a replica, in small.
 *
 * @module
 */

import type { Message } from "../protocol/messages.ts";
import { textsOfMessage } from "./wire.ts";

/** The state that a receiver folds messages into. */
export class Effects {
  /** Whatever has been woken, marked dirty or dropped from a cache. */
  readonly #touched = new Set<string>();
  #isInMaintenance = false;
  #isInPopMaintenance = false;

  /** Applies one message. */
  apply(message: Message): void {
    if (message.type === "maintenance_mode") this.#isInMaintenance = message.enabled;
    else if (message.type === "pop_maintenance_mode") this.#isInPopMaintenance = message.enabled;
    else for (const text of textsOfMessage(message)) this.#touched.add(text);
  }

  /** A fingerprint: a message that changes the state changes it. */
  toString(): string {
    return `${this.#touched.size} ${this.#isInMaintenance} ${this.#isInPopMaintenance}`;
  }
}
