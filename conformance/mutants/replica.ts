import { setTimeout as delay } from "node:timers/promises";
import type { Store } from "../../src/broker/mod.ts";
import { Mesh } from "../../src/mesh/mesh.ts";
import type { Message, OutgoingMessage } from "../../src/protocol/messages.ts";
import { DEFAULT_TENANT } from "../../src/protocol/tenant.ts";
import { type Mutant, type Plant, withEnv, withMeshOptions } from "./setup.ts";

/** Replicas that make the wrong thing of what they hear, or tell their peers the wrong thing. */
export const replicaMutants: readonly Mutant[] = [
  {
    name: "wakes-unheard",
    fault: "Frames of type 1 and 2 do not wake waiting pops.",
    node: "replica",
    caughtBy: [
      "wakes/push-wakes-peer",
      "wakes/three-nodes",
      "wakes/single-message-frame",
      "wakes/batch-frame",
      "framing/batch-skips-unusable-items",
    ],
    mayFail: ["wakes", "tenants", "hotlist"],
    plant: hearing((message) => message.type === "message_available" ? undefined : message),
  },
  {
    name: "wakes-first-item-alone",
    fault: "Of a batch of wakes only the first item is applied.",
    node: "replica",
    caughtBy: ["framing/batch-skips-unusable-items"],
    mayFail: ["wakes/batch-frame"],
    plant: hearing((message) =>
      message.type === "message_available"
        ? { ...message, items: message.items.slice(0, 1) }
        : message
    ),
  },
  {
    name: "absent-tenant-is-default",
    fault: "A frame without a tenant is taken as one for the default tenant.",
    node: "replica",
    caughtBy: ["tenants/absent-is-every-tenant", "tenants/garbled-is-absent"],
    plant: hearing((message) =>
      message.type === "message_available"
        ? {
          ...message,
          items: message.items.map((item) => ({ ...item, tenant: item.tenant ?? DEFAULT_TENANT })),
        }
        : message
    ),
  },
  {
    name: "tenant-unheard",
    fault: "The tenant of a frame is not looked at: every tenant's pops are woken.",
    node: "replica",
    caughtBy: ["tenants/named-touches-one", "tenants/off-other-touches-nothing"],
    plant: hearing((message) =>
      message.type === "message_available"
        ? { ...message, items: message.items.map((item) => ({ ...item, tenant: undefined })) }
        : message
    ),
  },
  {
    name: "wake-before-commit",
    fault: "A push tells the peers before its commit.",
    node: "replica",
    caughtBy: ["wakes/after-the-commit"],
    mayFail: ["wakes", "hotlist", "tenants"],
    plant: storing((store, mesh) => ({
      async push(tenant, items) {
        const hints = items.map(({ queue, partition }) => ({ queue, partition, tenant }));
        mesh()?.broadcast({ type: "message_available", items: hints });
        await delay(300);
        return await store.push(tenant, items);
      },
    })),
  },
  {
    name: "one-wake-for-each-partition",
    fault: "A push over several partitions sends a frame for each of them.",
    node: "replica",
    caughtBy: ["wakes/one-frame-per-push"],
    plant: saying((message, say) => {
      if (message.type !== "message_available") return say(message);
      // Each in a turn of its own: so they are not gathered again.
      for (const item of message.items) setImmediate(() => say({ ...message, items: [item] }));
    }),
  },
  {
    name: "duplicates-wake",
    fault: "A push that stores nothing but duplicates wakes the peers all the same.",
    node: "replica",
    caughtBy: ["wakes/nothing-for-duplicates"],
    plant: storing((store, mesh) => ({
      async push(tenant, items) {
        const result = await store.push(tenant, items);
        const hints = items.filter((_, i) => result.outcomes[i]?.status === "duplicate")
          .map(({ queue, partition }) => ({ queue, partition, tenant }));
        if (hints.length > 0) mesh()?.broadcast({ type: "message_available", items: hints });
        return result;
      },
    })),
  },
  {
    name: "no-polls",
    fault: "A waiting pop never looks by itself: without a wake it waits to its end.",
    node: "replica",
    caughtBy: ["wakes/without-the-mesh", "hotlist/lost-hint-no-wait"],
    mayFail: ["wakes"],
    plant: withEnv(() => ({
      POP_WAIT_INITIAL_INTERVAL_MS: "3600000",
      POP_WAIT_MAX_INTERVAL_MS: "3600000",
    })),
  },
  {
    name: "dirty-hints-not-coalesced",
    fault: "A dirty partition is hinted once for each of its messages.",
    node: "replica",
    caughtBy: ["hotlist/coalesced"],
    plant: saying((message, say) =>
      say(
        message.type === "hotlist_dirty"
          ? { ...message, items: message.items.flatMap((item) => [item, item, item]) }
          : message,
      )
    ),
  },
  {
    name: "dirty-hints-unsent",
    fault: "No dirty hints are sent.",
    node: "replica",
    caughtBy: ["hotlist/dirty-hint-sent"],
    mayFail: ["hotlist"],
    plant: saying((message, say) => message.type === "hotlist_dirty" ? undefined : say(message)),
  },
  {
    name: "configuration-unsaid",
    fault: "A changed or deleted queue is told to nobody.",
    node: "replica",
    caughtBy: ["configuration/change-sends-10", "configuration/delete-sends-11"],
    mayFail: ["configuration"],
    plant: saying((message, say) =>
      message.type === "queue_config_set" || message.type === "queue_config_delete"
        ? undefined
        : say(message)
    ),
  },
  {
    name: "configuration-unheard",
    fault: "Frames of type 10 and 11 drop nothing from the cache.",
    node: "replica",
    caughtBy: ["configuration/frame-drops-cache", "configuration/peer-drops-cached-lease-time"],
    mayFail: ["configuration"],
    plant: hearing((message) => message.type.startsWith("queue_config") ? undefined : message),
  },
  {
    name: "flips-unheard",
    fault: "A flip that another replica announces is not followed.",
    node: "replica",
    caughtBy: ["maintenance/followed-by-peer"],
    mayFail: ["maintenance"],
    plant: hearing((message) => message.type.endsWith("maintenance_mode") ? undefined : message),
  },
  {
    name: "flips-unsaid",
    fault: "A flip is told to nobody.",
    node: "replica",
    caughtBy: ["maintenance/flip-sends-40", "maintenance/pop-flip-sends-41"],
    mayFail: ["maintenance"],
    plant: saying((message, say) =>
      message.type.endsWith("maintenance_mode") ? undefined : say(message)
    ),
  },
  {
    name: "never-reconciles",
    fault: "QUEEN_CACHE_REFRESH_INTERVAL_MS is not read: it reconciles once an hour.",
    node: "replica",
    caughtBy: ["reconcile/flags-read-again", "reconcile/caches-dropped"],
    plant: withEnv(() => ({ QUEEN_CACHE_REFRESH_INTERVAL_MS: "3600000" })),
  },
];

/** Changes what it hears, or keeps it from hearing it. */
function hearing(change: (message: Message) => Message | undefined): Plant {
  return withMeshOptions(({ onMessage }) => ({
    onMessage: (message, from) => {
      const changed = change(message);
      if (changed) onMessage(changed, from);
    },
  }));
}

/** Changes what it says. */
function saying(
  change: (message: OutgoingMessage, say: (message: OutgoingMessage) => void) => void,
): Plant {
  return (setup) => ({
    ...setup,
    createMesh: (options, parts) =>
      new class extends Mesh {
        override broadcast(message: OutgoingMessage): void {
          change(message, (changed) => super.broadcast(changed));
        }
      }(options, parts),
  });
}

/** Changes how messages are stored. */
function storing(
  change: (store: Store, mesh: () => Mesh | undefined) => Partial<Store>,
): Plant {
  return (setup) => ({
    ...setup,
    store: (store, mesh) => {
      const changes = change(store, mesh);
      return new Proxy(store, {
        get: (target, key) => {
          const found = key in changes ? changes[key as keyof Store] : target[key as keyof Store];
          return typeof found === "function" ? found.bind(target) : found;
        },
      });
    },
  });
}
