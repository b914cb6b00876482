/**
 * Faults planted into the nodes of a simulated mesh: a simulator that finds nothing proves nothing by
 * itself. Each of them puts a wrong part in place of a right one; the mesh knows of none.
 *
 * @module
 */

import { Backoff, BACKOFF_MS_MIN } from "../mesh/backoff.ts";
import { Handshake, type HandshakeVerdict } from "../mesh/handshake.ts";
import { Liveness } from "../mesh/liveness.ts";
import type { MeshConfig } from "../mesh/config.ts";
import { Mesh, type MeshParts } from "../mesh/mesh.ts";
import type { Connection, Network } from "../mesh/runtime.ts";
import { SendQueue } from "../mesh/send_queue.ts";
import { type Frame, FrameDecoder } from "../protocol/frame.ts";
import type { Message, OutgoingMessage } from "../protocol/messages.ts";
import type { NodeSettings } from "./node_settings.ts";
import type { MeshSetup, Plant } from "./simulated_node.ts";
import type { Rule } from "./violation.ts";

/** A planted fault. */
export interface Fault {
  /** What is wrong, in words. */
  readonly name: string;
  /** The rules by which it may come to light. */
  readonly rules: readonly Rule[];
  /** Plants it. */
  readonly plant: Plant;
}

/** Every fault that has been thought of. */
export const FAULTS: readonly Fault[] = [
  {
    name: "frames that waited are kept over a reconnect",
    rules: ["stale"],
    plant: withQueue((bounds) =>
      new class extends SendQueue {
        readonly #waiting: Uint8Array[] = [];
        override push(frame: Uint8Array): boolean {
          const isQueued = super.push(frame);
          if (isQueued) this.#waiting.push(frame.slice());
          return isQueued;
        }
        override taken(count: number): number {
          const completed = super.taken(count);
          this.#waiting.splice(0, completed);
          return completed;
        }
        override clear(): number {
          const dropped = super.clear();
          const kept = this.#waiting.splice(0).slice(1);
          for (const frame of kept) this.push(frame);
          return dropped - kept.length;
        }
      }(bounds)
    ),
  },
  {
    name: "a first frame is let in without a HELLO",
    rules: ["dispatch", "handshake"],
    plant: withParts({
      createHandshake: (options) =>
        new class extends Handshake {
          override async judge(frame: Frame): Promise<HandshakeVerdict> {
            const verdict = await super.judge(frame);
            return verdict.kind === "refused" ? { kind: "accepted", serverId: "?" } : verdict;
          }
        }(options),
    }),
  },
  {
    name: "a HELLO that was captured is let in again",
    rules: ["dispatch", "handshake"],
    plant: withParts({
      createHandshake: (options) => {
        const judges = () => new Handshake(options);
        return new class extends Handshake {
          override judge(frame: Frame): Promise<HandshakeVerdict> {
            return judges().judge(frame);
          }
        }(options);
      },
    }),
  },
  {
    name: "what waited at the end of a connection is not counted as dropped",
    rules: ["accounting"],
    plant: withQueue((bounds) =>
      new class extends SendQueue {
        override clear(): number {
          super.clear();
          return 0;
        }
      }(bounds)
    ),
  },
  {
    name: "a queue grows beyond its bounds",
    rules: ["bounds"],
    plant: withQueue(({ framesMax, bytesMax }) =>
      new SendQueue({ framesMax: framesMax * 2, bytesMax: bytesMax * 2 })
    ),
  },
  {
    name: "frames overtake each other",
    rules: ["order"],
    plant: withQueue((bounds) =>
      new class extends SendQueue {
        #held: Uint8Array | null = null;
        override get frames(): number {
          return super.frames + (this.#held === null ? 0 : 1);
        }
        override push(frame: Uint8Array): boolean {
          const held = this.#held;
          this.#held = null;
          if (held === null && super.frames > 2 && super.frames + 2 < bounds.framesMax) {
            this.#held = frame.slice();
            return true;
          }
          const isQueued = super.push(frame);
          if (held !== null) super.push(held);
          return isQueued;
        }
        override clear(): number {
          const held = this.#held === null ? 0 : 1;
          this.#held = null;
          return super.clear() + held;
        }
      }(bounds)
    ),
  },
  {
    name: "a write that was taken in part counts as taken whole",
    rules: ["wire", "accounting", "bounds", "order"],
    plant: withQueue((bounds) =>
      new class extends SendQueue {
        #run = 0;
        override next(): Uint8Array | undefined {
          const run = super.next();
          this.#run = run?.length ?? 0;
          return run;
        }
        override taken(): number {
          return super.taken(this.#run);
        }
      }(bounds)
    ),
  },
  {
    name: "a redial does not wait",
    rules: ["redial"],
    plant: withParts({
      createBackoff: ({ random }) =>
        new class extends Backoff {
          override next(): number {
            return super.next() * 0;
          }
        }(random),
    }),
  },
  {
    name: "the backoff never starts over",
    rules: ["redial"],
    plant: withParts({
      createBackoff: ({ random }) =>
        new class extends Backoff {
          override reset(): void {}
        }(random),
    }),
  },
  {
    name: "the backoff is not capped",
    rules: ["redial"],
    plant: withParts({
      createBackoff: ({ random }) =>
        new class extends Backoff {
          #waitMs = BACKOFF_MS_MIN;
          override next(): number {
            return (this.#waitMs *= 2) / 2;
          }
          override reset(): void {
            this.#waitMs = BACKOFF_MS_MIN;
          }
        }(random),
    }),
  },
  {
    name: "the backoff starts over after every attempt",
    rules: ["redial"],
    plant: withParts({
      createBackoff: ({ random }) =>
        new class extends Backoff {
          override next(): number {
            this.reset();
            return super.next();
          }
        }(random),
    }),
  },
  {
    name: "the orderly end of a dialled connection is not noticed",
    rules: ["heartbeat", "heal"],
    plant: withConnections((connection) => {
      let onClose = () => {};
      const closed = new Promise<null>((resolve) => onClose = () => resolve(null));
      return {
        remote: connection.remote,
        close() {
          onClose();
          connection.close();
        },
        write: (bytes) => connection.write(bytes).catch(() => new Promise<never>(() => {})),
        read: async (buffer) => await connection.read(buffer).catch(() => null) ?? await closed,
      };
    }),
  },
  {
    name: "a stalled peer is kept",
    rules: ["stall"],
    plant: (setup) => {
      const { deadThresholdMs } = setup.settings;
      const changed = withConfig({ deadThresholdMs: 1_000_000 })(setup);
      // The liveness of others is judged rightly.
      const createLiveness: MeshParts["createLiveness"] = (options) =>
        new Liveness({ ...options, deadThresholdMs });
      return { ...changed, parts: { ...changed.parts, createLiveness } };
    },
  },
  {
    name: "frames wait in the runtime, without a bound, instead of in the queue",
    rules: ["accounting", "stall"],
    plant: withConnections((connection) => {
      let writing: Promise<void> = Promise.resolve();
      return {
        remote: connection.remote,
        close: () => connection.close(),
        read: (buffer) => connection.read(buffer),
        write(bytes) {
          const copy = bytes.slice();
          writing = writing.then(async () => {
            for (let start = 0; start < copy.length;) {
              start += await connection.write(copy.subarray(start));
            }
          }).catch(() => {});
          return Promise.resolve(bytes.length);
        },
      };
    }),
  },
  {
    name: "frames that share another one's are not counted as coalesced",
    rules: ["accounting"],
    plant: withMesh((Base) =>
      class extends Base {
        #last = "";
        override broadcast(message: OutgoingMessage): void {
          const text = JSON.stringify(message);
          if (text !== this.#last) super.broadcast(message);
          this.#last = text;
        }
      }
    ),
  },
  {
    name: "a message that was received is sent on",
    rules: ["forwarded", "accounting"],
    plant: (setup) => {
      let mesh: Mesh | null = null;
      const onMessage = (message: Message, from: string) => {
        setup.options.onMessage(message, from);
        mesh?.broadcast(message);
      };
      return {
        ...setup,
        create: (options, parts) => mesh = setup.create({ ...options, onMessage }, parts),
      };
    },
  },
  {
    name: "a frame is dispatched twice",
    rules: ["dispatch"],
    plant: withParts({
      createDecoder: () =>
        new class extends FrameDecoder {
          #again: Frame | undefined;
          override next(): Frame | undefined {
            const again = this.#again;
            this.#again = undefined;
            if (again !== undefined) return again;
            return this.#again = super.next();
          }
        }(),
    }),
  },
  {
    name: "a frame that arrives in pieces is lost",
    rules: ["dispatch", "accounting", "liveness"],
    plant: withParts({
      createDecoder: () =>
        new class extends FrameDecoder {
          #isLost = false;
          override filled(count: number): void {
            this.#isLost = this.partial;
            super.filled(count);
          }
          override next(): Frame | undefined {
            const frame = super.next();
            if (frame === undefined || !this.#isLost || this.lengthMax <= 65_536) return frame;
            this.#isLost = false;
            return super.next();
          }
        }(),
    }),
  },
  {
    name: "a flip toggles the mode instead of setting it",
    rules: ["idempotence"],
    plant: (setup) => {
      let isOn = false;
      const onMessage = (message: Message, from: string) => {
        if (message.type !== "maintenance_mode") return setup.options.onMessage(message, from);
        const toggling = {
          type: message.type,
          get enabled() {
            return isOn = !isOn;
          },
        };
        setup.options.onMessage(toggling, from);
      };
      return { ...setup, options: { ...setup.options, onMessage } };
    },
  },
  {
    name: "heartbeats go out too seldom",
    rules: ["heartbeat"],
    plant: withConfig({ heartbeatMs: 5000 }),
  },
  {
    name: "a closed mesh leaves a timer",
    rules: ["close"],
    plant: withParts({
      createLiveness: (options) =>
        new class extends Liveness {
          override close(): void {}
        }(options),
    }),
  },
  {
    name: "a server is never taken for dead",
    rules: ["liveness"],
    plant: withParts({
      createLiveness: (options) => new Liveness({ ...options, deadThresholdMs: 1_000_000 }),
    }),
  },
];

function withParts(parts: Partial<MeshSetup["parts"]>): Plant {
  return (setup) => ({ ...setup, parts: { ...setup.parts, ...parts } });
}

function withQueue(create: (bounds: NodeSettings) => SendQueue): Plant {
  return (setup) => ({
    ...setup,
    parts: { ...setup.parts, createQueue: () => create(setup.settings) },
  });
}

function withConfig(config: Partial<MeshConfig>): Plant {
  return (setup) => ({
    ...setup,
    options: { ...setup.options, config: { ...setup.options.config, ...config } },
  });
}

function withMesh(extend: (base: typeof Mesh) => typeof Mesh): Plant {
  const Extended = extend(Mesh);
  return (setup) => ({ ...setup, create: (options, parts) => new Extended(options, parts) });
}

/** Puts a wrapper around every connection that is dialled. */
function withConnections(wrap: (connection: Connection) => Connection): Plant {
  return (setup) => {
    const { runtime } = setup.options;
    const network: Network = {
      resolve: (host, options) => runtime.network.resolve(host, options),
      listen: (options) => runtime.network.listen(options),
      connect: async (endpoint, options) => wrap(await runtime.network.connect(endpoint, options)),
    };
    return { ...setup, options: { ...setup.options, runtime: { ...runtime, network } } };
  };
}
