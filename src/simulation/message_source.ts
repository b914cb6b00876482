/**
 * Messages to broadcast, each to be told from every other one wherever its type allows that.
 *
 * @module
 */

import type { OutgoingHint, OutgoingMessage } from "../protocol/messages.ts";
import type { Prng } from "./prng.ts";

const TENANTS = [undefined, undefined, "0a0b0c0d-0000-4000-8000-00000000000e"];

/** Makes messages of all types, for one run. */
export class MessageSource {
  readonly #prng: Prng;
  #serial = 0;

  /** Has made nothing yet. */
  constructor(prng: Prng) {
    this.#prng = prng;
  }

  /** One message of any type. */
  any(): OutgoingMessage {
    const prng = this.#prng;
    switch (prng.integer(0, 7)) {
      case 0:
        return { type: "queue_config_set", queue: this.#queue(), tenant: prng.pick(TENANTS) };
      case 1:
        return { type: "queue_config_delete", queue: this.#queue(), tenant: prng.pick(TENANTS) };
      case 2:
        return { type: "maintenance_mode", enabled: prng.chance(0.5) };
      case 3:
        return { type: "pop_maintenance_mode", enabled: prng.chance(0.5) };
      case 4: {
        const group = prng.pick([undefined, "", "g\u00fc"]);
        const items = this.#hints().map((hint) => ({ ...hint, group }));
        return { type: "hotlist_dirty", items };
      }
      default:
        return { type: "message_available", items: this.#hints() };
    }
  }

  /** Several messages, some of them twice. */
  many(count: number): OutgoingMessage[] {
    const messages: OutgoingMessage[] = [];
    while (messages.length < count) {
      const last = messages.at(-1);
      messages.push(last !== undefined && this.#prng.chance(0.2) ? last : this.any());
    }
    return messages;
  }

  /** One short message, as cheap as they come. */
  short(): OutgoingMessage {
    return { type: "queue_config_set", queue: this.#queue() };
  }

  /** One message with a name of about `bytes` bytes. */
  long(bytes: number): OutgoingMessage {
    return { type: "queue_config_set", queue: this.#queue().padEnd(bytes, "~") };
  }

  #queue(): string {
    return `q${++this.#serial}`;
  }

  #hints(): OutgoingHint[] {
    const queue = this.#queue();
    const tenant = this.#prng.pick(TENANTS);
    const count = this.#prng.pick([1, 1, 1, 2, 5]);
    return Array.from({ length: count }, (_, i) => ({ queue, partition: `p${i}`, tenant }));
  }
}
