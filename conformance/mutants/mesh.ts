import { setTimeout as delay } from "node:timers/promises";
import { Backoff } from "../../src/mesh/backoff.ts";
import { Liveness, type ServerStats } from "../../src/mesh/liveness.ts";
import { Mesh } from "../../src/mesh/mesh.ts";
import { SendQueue } from "../../src/mesh/send_queue.ts";
import { encodeFrame } from "../../src/protocol/frame.ts";
import type { OutgoingMessage } from "../../src/protocol/messages.ts";
import {
  type Mutant,
  type Plant,
  type Stats,
  withEnv,
  withMeshOptions,
  withParts,
  withStats,
} from "./setup.ts";
import { rewritingReads, rewritingWrites, withAccepted, withDialled, withNetwork } from "./wire.ts";

const NOTHING = new Uint8Array();
const HEARTBEAT = 3;
const HELLO = 4;

/** Nodes that connect, send, keep count or answer wrongly. */
export const meshMutants: readonly Mutant[] = [
  {
    name: "frames-kept-while-peer-is-down",
    fault: "Wakes that are asked for while a peer is down are kept and sent once it is back.",
    node: "mesh",
    caughtBy: ["topology/nothing-stale-after-reconnect"],
    mayFail: ["sending", "topology"],
    plant: (setup) => ({
      ...setup,
      createMesh: (options, parts) =>
        new class extends Mesh {
          readonly #kept: OutgoingMessage[] = [];
          #timer: ReturnType<typeof setInterval> | undefined;
          override broadcast(message: OutgoingMessage): void {
            if (isConnected(this.stats())) return super.broadcast(message);
            this.#kept.push(message);
            this.#timer ??= setInterval(() => {
              if (!isConnected(this.stats())) return;
              clearInterval(this.#timer);
              this.#timer = undefined;
              for (const kept of this.#kept.splice(0)) super.broadcast(kept);
            }, 5);
          }
          override close(): Promise<void> {
            clearInterval(this.#timer);
            return super.close();
          }
        }(options, parts),
    }),
  },
  {
    name: "redials-at-once",
    fault: "After a connection has failed, the next attempt does not wait.",
    node: "mesh",
    caughtBy: ["topology/backoff-grows"],
    mayFail: ["topology"],
    plant: withParts({
      createBackoff: ({ random }) =>
        new class extends Backoff {
          override next(): number {
            return 1;
          }
        }(random),
    }),
  },
  {
    name: "backoff-does-not-grow",
    fault: "Every attempt to reach a peer waits 250 ms, however many have failed.",
    node: "mesh",
    caughtBy: ["topology/backoff-grows"],
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
    name: "never-dials-again",
    fault: "A peer whose connection has ended is not dialled again for an hour.",
    node: "mesh",
    caughtBy: ["topology/dials-again-after-close", "topology/reconnects-after-refusal"],
    mayFail: [
      "topology",
      "handshake",
      "framing",
      "sending",
      "observing",
      "liveness",
      "environment",
    ],
    plant: withParts({
      createBackoff: ({ random }) =>
        new class extends Backoff {
          override next(): number {
            return 3_600_000;
          }
        }(random),
    }),
  },
  {
    name: "forwards-frames",
    fault: "A wake that it receives is sent on to its own peers.",
    node: "mesh",
    caughtBy: ["topology/not-forwarded"],
    mayFail: ["tenants", "sending", "framing", "topology/two-connections"],
    plant: (setup) => {
      let mesh: Mesh | undefined;
      const created: Plant = (before) => ({
        ...before,
        createMesh: (options, parts) => mesh = before.createMesh(options, parts),
      });
      return withMeshOptions(({ onMessage }) => ({
        onMessage: (message, from) => {
          onMessage(message, from);
          mesh?.broadcast(message);
        },
      }))(created(setup));
    },
  },
  {
    name: "flip-toggles",
    fault: "A flip that comes twice turns the mode off again.",
    node: "mesh",
    caughtBy: ["topology/applied-twice"],
    mayFail: ["framing/frames-keep-their-order", "maintenance"],
    plant: (setup) => {
      let isOn = false;
      return withMeshOptions(({ onMessage }) => ({
        onMessage: (message, from) => {
          if (message.type !== "maintenance_mode") return onMessage(message, from);
          isOn = message.enabled && !isOn;
          onMessage({ ...message, enabled: isOn }, from);
        },
      }))(setup);
    },
  },
  {
    name: "binds-without-peers",
    fault: "It listens on the mesh port although it has no peers.",
    node: "mesh",
    caughtBy: ["topology/no-peers-binds-nothing"],
    mayFail: ["observing/no-peers", "topology/disabled-binds-nothing"],
    plant: (setup) => {
      if ((setup.env["QUEEN_MESH_PEERS"] ?? "") !== "") return setup;
      return {
        ...setup,
        createMesh: (options, parts) =>
          new class extends Mesh {
            override async start(): Promise<void> {
              await setup.runtime.network.listen({ port: options.config.port ?? 0 });
              await super.start();
            }
          }(options, parts),
      };
    },
  },
  {
    name: "cannot-be-switched-off",
    fault: "QUEEN_SYNC_ENABLED is not read: the mesh is always on.",
    node: "mesh",
    caughtBy: ["topology/disabled-binds-nothing", "observing/disabled"],
    mayFail: ["environment"],
    plant: withEnv(() => ({ QUEEN_SYNC_ENABLED: "true" })),
  },
  {
    name: "first-address-alone",
    fault: "Of the addresses that a peer's name yields, only the first is tried.",
    node: "mesh",
    caughtBy: ["topology/localhost-ipv4"],
    mayFail: ["topology/localhost-ipv6"],
    plant: withNetwork((network) => ({
      resolve: async (host, options) => {
        const ips = await network.resolve(host, options);
        // As a machine answers whose resolver gives ::1 first.
        return [...ips].sort((a, b) => Number(b.includes(":")) - Number(a.includes(":"))).slice(
          0,
          1,
        );
      },
    })),
  },
  {
    name: "waits-for-slow-peer",
    fault: "A request that sends a wake is answered once every peer has taken it.",
    node: "mesh",
    caughtBy: ["sending/never-waits"],
    mayFail: ["sending"],
    plant: (setup) => ({
      ...setup,
      beforeNotified: async (mesh) => {
        for (;;) {
          const stats = mesh.stats();
          if (!stats.enabled || stats.peers.every(({ queued }) => queued === 0)) return;
          await delay(5);
        }
      },
    }),
  },
  {
    name: "slow-peer-stops-others",
    fault: "While one peer's queue is full nothing is sent to the others either.",
    node: "mesh",
    caughtBy: ["sending/slow-peer-costs-others-nothing"],
    mayFail: ["sending"],
    plant: (setup) => ({
      ...setup,
      createMesh: (options, parts) =>
        new class extends Mesh {
          override broadcast(message: OutgoingMessage): void {
            const stats = this.stats();
            const isSlow = stats.enabled &&
              stats.peers.some(({ connected, queued }) => connected && queued >= 1024);
            if (!isSlow) super.broadcast(message);
          }
        }(options, parts),
    }),
  },
  {
    name: "queue-without-bound",
    fault: "A peer's queue holds a hundred thousand frames.",
    node: "mesh",
    caughtBy: ["sending/queue-bounded"],
    plant: withParts({
      createQueue: () => new SendQueue({ framesMax: 100_000, bytesMax: 512 * 1024 * 1024 }),
    }),
  },
  {
    name: "drops-uncounted",
    fault: "Frames that are dropped are not counted.",
    node: "mesh",
    caughtBy: ["sending/queue-bounded", "sending/drops-are-counted-while-down"],
    plant: withStats((stats) => stats["enabled"] ? { ...stats, messages_dropped: 0 } : stats),
  },
  {
    name: "frames-overtake",
    fault: "Every second wake leaves behind the one that was asked for after it.",
    node: "mesh",
    caughtBy: ["sending/order-to-one-peer"],
    mayFail: ["sending", "framing", "topology", "tenants", "environment"],
    plant: withDialled((connection) => {
      let held: Uint8Array = NOTHING;
      return rewritingWrites(connection, ({ type, bytes }) => {
        if (type === HELLO || type === HEARTBEAT) return bytes;
        if (held.length === 0) {
          held = bytes.slice();
          return NOTHING;
        }
        const both = new Uint8Array(bytes.length + held.length);
        both.set(bytes);
        both.set(held, bytes.length);
        held = NOTHING;
        return both;
      });
    }),
  },
  {
    name: "hello-counted-as-sent",
    fault: "The HELLO counts as a sent message.",
    node: "mesh",
    caughtBy: ["sending/counts-frames-written"],
    mayFail: ["sending"],
    plant: (setup) => {
      let hellos = 0;
      const counting = withDialled((connection) =>
        rewritingWrites(connection, ({ type, bytes }) => {
          if (type === HELLO) hellos++;
          return bytes;
        })
      );
      return withStats((stats) => adding(stats, "messages_sent", hellos))(counting(setup));
    },
  },
  {
    name: "heartbeats-uncounted",
    fault: "Heartbeats do not count as sent messages.",
    node: "mesh",
    caughtBy: ["sending/counts-frames-written"],
    mayFail: ["sending"],
    plant: (setup) => {
      let beats = 0;
      const counting = withDialled((connection) =>
        rewritingWrites(connection, ({ type, bytes }) => {
          if (type === HEARTBEAT) beats++;
          return bytes;
        })
      );
      return withStats((stats) => adding(stats, "messages_sent", -beats))(counting(setup));
    },
  },
  {
    name: "no-heartbeats",
    fault: "No heartbeats are sent.",
    node: "mesh",
    caughtBy: ["sending/heartbeats"],
    mayFail: ["sending", "liveness"],
    plant: withDialled((connection) =>
      rewritingWrites(connection, ({ type, bytes }) => type === HEARTBEAT ? NOTHING : bytes)
    ),
  },
  {
    name: "heartbeats-too-often",
    fault: "Heartbeats are sent ten times as often as they should be.",
    node: "mesh",
    caughtBy: ["sending/heartbeats"],
    mayFail: ["sending"],
    plant: withMeshOptions(({ config }) => ({
      config: { ...config, heartbeatMs: Math.ceil((config.heartbeatMs ?? 1000) / 10) },
    })),
  },
  {
    name: "received-heartbeats-uncounted",
    fault: "Heartbeats that are received do not count.",
    node: "mesh",
    caughtBy: ["liveness/counts-every-frame", "framing/many-in-one-segment"],
    mayFail: ["framing", "handshake", "liveness", "topology", "tenants", "maintenance"],
    plant: (setup) => {
      let beats = 0;
      const counting = withAccepted((connection) =>
        rewritingReads(connection, ({ type, bytes, position }) => {
          if (type === HEARTBEAT && position > 0) beats++;
          return bytes;
        })
      );
      return withStats((stats) => adding(stats, "messages_received", -beats))(counting(setup));
    },
  },
  {
    name: "heartbeat-id-believed",
    fault: "A peer goes by the server_id of its heartbeats instead of that of its HELLO.",
    node: "mesh",
    caughtBy: ["liveness/keyed-by-hello-id"],
    mayFail: ["liveness"],
    plant: (setup) => {
      let liveness: Liveness | undefined;
      const watched = withParts({
        createLiveness: (options) => liveness = new Liveness(options),
      });
      const hearing = withAccepted((connection) =>
        rewritingReads(connection, ({ type, payload, bytes, position }) => {
          if (type !== HEARTBEAT || position === 0) return bytes;
          try {
            const { server_id } = JSON.parse(payload.toString());
            if (typeof server_id === "string" && server_id !== "") liveness?.heard(server_id);
          } catch {
            // No id, nobody to hear.
          }
          return bytes;
        })
      );
      return hearing(watched(setup));
    },
  },
  {
    name: "heartbeats-alone-count-as-life",
    fault: "Only heartbeats keep a peer alive; other frames do not.",
    node: "mesh",
    caughtBy: ["liveness/any-frame-keeps-alive"],
    mayFail: ["liveness"],
    plant: (setup) => {
      let beats = 0;
      const counting = withAccepted((connection) =>
        rewritingReads(connection, ({ type, bytes }) => {
          if (type === HEARTBEAT || type === HELLO) beats++;
          return bytes;
        })
      );
      return counting(
        withParts({
          createLiveness: (options) =>
            new class extends Liveness {
              override heard(serverId: string): void {
                if (beats > 0) super.heard(serverId);
                beats = 0;
              }
            }(options),
        })(setup),
      );
    },
  },
  {
    name: "nobody-dies",
    fault: "A peer that has been heard once counts as alive for ever.",
    node: "mesh",
    caughtBy: ["liveness/dead-after-threshold", "liveness/kill-and-return", "liveness/alive-again"],
    mayFail: ["liveness"],
    plant: withParts({
      createLiveness: (options) => new Liveness({ ...options, deadThresholdMs: 100_000_000 }),
    }),
  },
  {
    name: "the-dead-stay-dead",
    fault: "A peer that has died once counts as dead for ever.",
    node: "mesh",
    caughtBy: ["liveness/alive-again"],
    mayFail: ["liveness"],
    plant: withParts({
      createLiveness: (options) =>
        new class extends Liveness {
          readonly #dead = new Set<string>();
          override servers(): ServerStats[] {
            return super.servers().map((server) => {
              if (!server.alive) this.#dead.add(server.server_id);
              return { ...server, alive: !this.#dead.has(server.server_id) };
            });
          }
        }(options),
    }),
  },
  {
    name: "configured-counts-as-dead",
    fault: "A configured peer that was never heard from counts as dead.",
    node: "mesh",
    caughtBy: ["liveness/never-heard-is-neither"],
    mayFail: ["liveness"],
    plant: withStats((stats) => {
      const heard = Number(stats["servers_alive"]) + Number(stats["servers_dead"]);
      const unheard = Math.max(0, Number(stats["peer_count"]) - heard);
      return adding(stats, "servers_dead", unheard);
    }),
  },
  {
    name: "default-tenant-unnamed",
    fault: "The default tenant is left out of the frames that it sends.",
    node: "mesh",
    caughtBy: ["tenants/sent-frames-name-tenant"],
    plant: withDialled((connection) =>
      rewritingWrites(connection, ({ type, payload, bytes }) => {
        if (type !== 1 && type !== 2) return bytes;
        const { tenant: _, items, ...rest } = JSON.parse(payload.toString());
        const bare = items?.map(({ tenant: _, ...item }: Record<string, unknown>) => item);
        return encodeFrame(type, JSON.stringify({ ...rest, ...(bare && { items: bare }) }));
      })
    ),
  },
  {
    name: "flips-ignored",
    fault: "A node without a database does not apply flips.",
    node: "mesh",
    caughtBy: ["maintenance/frame-applied-by-mesh-only-node", "framing/frames-keep-their-order"],
    mayFail: ["topology/applied-twice"],
    plant: withMeshOptions(() => ({ onMessage: () => {} })),
  },
  {
    name: "resolved-means-configured",
    fault: "The stats call a peer resolved although it is not connected.",
    node: "mesh",
    caughtBy: ["observing/resolved-equals-connected"],
    mayFail: ["observing"],
    plant: withStats((stats) => ({
      ...stats,
      ...(Array.isArray(stats["peers"])
        ? { peers: stats["peers"].map((peer) => ({ ...peer, resolved: true })) }
        : {}),
    })),
  },
  {
    name: "routes-disagree",
    fault: "One of the two stats routes leaves out the modes.",
    node: "mesh",
    caughtBy: ["observing/both-routes-agree"],
    mayFail: ["observing"],
    plant: withStats((stats, route) => {
      if (!route.includes("inter-instance")) return stats;
      const { maintenance_mode: _, pop_maintenance_mode: __, ...rest } = stats;
      return rest;
    }),
  },
  {
    name: "signature-failures-apart",
    fault: "signature_failures stays 0 whatever handshake_failures says.",
    node: "mesh",
    caughtBy: ["observing/signature-failures-equal"],
    plant: withStats((stats) => stats["enabled"] ? { ...stats, signature_failures: 0 } : stats),
  },
  {
    name: "aliases-unread",
    fault: "The older names QUEEN_UDP_PEERS and QUEEN_UDP_NOTIFY_PORT are not read.",
    node: "mesh",
    caughtBy: ["environment/aliases"],
    mayFail: ["environment"],
    plant: withEnv(() => ({ QUEEN_UDP_PEERS: undefined, QUEEN_UDP_NOTIFY_PORT: undefined })),
  },
  {
    name: "older-name-wins",
    fault: "Where both are set, the older name QUEEN_UDP_PEERS wins over QUEEN_MESH_PEERS.",
    node: "mesh",
    caughtBy: ["environment/new-name-wins"],
    plant: withEnv(({ QUEEN_UDP_PEERS, QUEEN_MESH_PEERS }) => ({
      QUEEN_MESH_PEERS: QUEEN_UDP_PEERS || QUEEN_MESH_PEERS,
    })),
  },
  {
    name: "bad-boolean-means-off",
    fault:
      "A QUEEN_SYNC_ENABLED that means nothing switches the mesh off instead of stopping the start.",
    node: "mesh",
    caughtBy: ["environment/bad-boolean-refused"],
    plant: withEnv(({ QUEEN_SYNC_ENABLED: text }) => ({
      QUEEN_SYNC_ENABLED:
        text === undefined || /^(true|1|yes|on|false|0|no|off)?$/i.test(text.trim())
          ? text
          : "false",
    })),
  },
  {
    name: "default-port-for-peers",
    fault: "A peer without a port is dialled on 6633 instead of the node's own mesh port.",
    node: "mesh",
    caughtBy: ["environment/default-port"],
    mayFail: ["environment/bad-port-tail", "environment/peer-syntax"],
    plant: withMeshOptions(({ config }) => ({
      config: {
        ...config,
        peers: (config.peers ?? []).map(({ host, port }) => ({
          host,
          port: port === config.port ? 6633 : port,
        })),
      },
    })),
  },
  {
    name: "bind-failure-unsaid",
    fault: "Where the mesh port cannot be bound, the stats say that it runs.",
    node: "mesh",
    caughtBy: ["environment/bind-failed"],
    plant: withStats((stats) => {
      if (stats["reason"] !== "bind_failed") return stats;
      const { reason: _, ...rest } = stats;
      return { ...rest, running: true };
    }),
  },
  {
    name: "hello-under-another-id",
    fault: "Its HELLO gives another server_id than its stats.",
    node: "mesh",
    caughtBy: ["handshake/hello-first", "environment/server-id"],
    mayFail: ["sending/heartbeats", "liveness"],
    plant: withDialled((connection) =>
      rewritingWrites(connection, ({ type, payload, bytes }) => {
        if (type !== HELLO) return bytes;
        const { server_id, ...rest } = JSON.parse(payload.toString());
        return encodeFrame(HELLO, JSON.stringify({ server_id: `${server_id}-mesh`, ...rest }));
      })
    ),
  },
];

function isConnected(stats: ReturnType<Mesh["stats"]>): boolean {
  return !stats.enabled || stats.peers.every(({ connected }) => connected);
}

function adding(stats: Stats, name: string, count: number): Stats {
  return typeof stats[name] === "number" ? { ...stats, [name]: stats[name] + count } : stats;
}
