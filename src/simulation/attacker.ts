/**
 * Somebody who can reach the mesh ports and means harm, or is merely of another make.
 *
 * @module
 */

import type { Connection } from "../mesh/runtime.ts";
import type { CapturedHello } from "./invariants.ts";
import type { Prng } from "./prng.ts";
import type { SimulatedHost } from "./host.ts";
import { MESH_PORT } from "./simulated_node.ts";
import { frameBytes, macText, TYPE } from "./wire.ts";

/** More connections than a listener keeps without a HELLO. */
const FLOOD_CONNECTIONS = 70;

/** What an {@linkcode Attacker} rests on. */
export interface AttackerOptions {
  /** From where it comes. */
  readonly host: SimulatedHost;
  /** Its random choices. */
  readonly prng: Prng;
  /** The secret, which only those of another make use. */
  readonly secret: string;
  /** What it has captured. */
  readonly captured: readonly CapturedHello[];
}

/** Opens connections to nodes and says what a node should refuse, ignore or survive. */
export class Attacker {
  readonly #options: AttackerOptions;
  #count = 0;

  /** Has done nothing yet. */
  constructor(options: AttackerOptions) {
    this.#options = options;
  }

  /** Attacks a node in a way drawn at random; returns what it does, in words. */
  attack(target: SimulatedHost): string {
    const { prng } = this.#options;
    const kind = prng.pick(Object.keys(ATTACKS) as (keyof typeof ATTACKS)[]);
    const id = `x${++this.#count}`;
    const connections = kind === "flood" ? FLOOD_CONNECTIONS : 1;
    for (let i = 0; i < connections; i++) {
      const parts = ATTACKS[kind]({ ...this.#options, id, target: target.name });
      const isPatient = prng.chance(0.3);
      // What becomes of the connection is the node's affair: it may be refused or reset at any time.
      this.#run(target, parts, isPatient).catch(() => {});
    }
    return kind;
  }

  async #run(target: SimulatedHost, parts: Uint8Array[], isPatient: boolean): Promise<void> {
    const { clock, network } = this.#options.host.runtime;
    const { signal } = new AbortController();
    const ip = target.addresses[0]!;
    const connection = await network.connect({ ip, port: MESH_PORT }, { signal });
    for (const part of parts) {
      await write(connection, part);
      if (isPatient) await new Promise<void>((resolve) => clock.setTimer(20, resolve));
    }
    if (!isPatient) connection.close();
  }
}

async function write(connection: Connection, bytes: Uint8Array): Promise<void> {
  for (let start = 0; start < bytes.length;) {
    start += await connection.write(bytes.subarray(start));
  }
}

/** What an attack is made of. */
interface Means extends AttackerOptions {
  readonly id: string;
  readonly target: string;
}

/** The ways to attack: what is written, part by part. */
const ATTACKS = {
  /** Speaks before it has said who it is. */
  stranger: (means: Means) => [joined(evil(means), hello(means), evil(means))],

  /** Says a HELLO that has to be refused, and goes on in the same segment. */
  "bad hello": (means: Means) => [joined(badHello(means), evil(means))],

  /** Says what somebody else has said before, to this node or to another. */
  replay: (means: Means) => {
    const { prng, captured, secret } = means;
    // In open mode there is nothing to replay: any HELLO passes.
    if (captured.length === 0 || secret === "") return [evil(means)];
    return [joined(prng.pick(captured).bytes, evil(means))];
  },

  /** Sends bytes that mean nothing. */
  garbage: ({ prng }: Means) => [prng.random(new Uint8Array(prng.integer(1, 300)))],

  /** Stops in the middle of a HELLO. */
  torn: (means: Means) => {
    const bytes = hello(means);
    return [bytes.subarray(0, means.prng.integer(0, bytes.length - 1))];
  },

  /** Says everything one byte at a time. */
  slow: (means: Means) => {
    const bytes = joined(hello(means), frameBytes(TYPE.configSet, `{"queue":"${means.id}"}`));
    return Array.from(bytes, (_, i) => bytes.subarray(i, i + 1));
  },

  /** Breaks the framing after a good HELLO. */
  breaker: (means: Means) => {
    const length = means.prng.pick([0, 0x01000001, 0xffffffff]);
    const broken = new Uint8Array(4);
    new DataView(broken.buffer).setUint32(0, length);
    return [joined(hello(means), evil(means), broken, evil(means))];
  },

  /** A peer of another make: older, newer, or careless. */
  guest: (means: Means) => {
    const { prng } = means;
    const said = Array.from({ length: prng.integer(1, 8) }, () => oddFrame(means));
    // A later HELLO is ignored, whatever it says.
    if (prng.chance(0.2)) said.push(badHello(means), evil(means));
    return [hello(means), prng.chance(0.5) ? joined(...said) : said].flat();
  },

  /** One of many connections that never say a word. */
  flood: (_means: Means) => [],
} as const satisfies Record<string, (means: Means) => Uint8Array[]>;

/** Something that must be dispatched only where its connection has been let in. */
function evil({ id, prng }: Means): Uint8Array {
  return prng.chance(0.5)
    ? frameBytes(TYPE.available, JSON.stringify({ queue: `evil-${id}`, partition: "" }))
    : frameBytes(TYPE.maintenance, '{"enabled":true}');
}

function hello({ prng, secret, id }: Means): Uint8Array {
  const nonce = hexOf(prng, 32);
  const mac = macText(secret, nonce);
  const given = prng.chance(0.2) ? mac.toUpperCase() : mac;
  return frameBytes(TYPE.hello, JSON.stringify({ server_id: `guest-${id}`, nonce, mac: given }));
}

function badHello({ prng, secret, id }: Means): Uint8Array {
  const nonce = hexOf(prng, 32);
  const good = { server_id: `bad-${id}`, nonce, mac: macText(secret, nonce) };
  // In open mode only the server id can be wrong.
  const forged = [
    { ...good, mac: macText("another secret", nonce) },
    { ...good, mac: good.mac.slice(0, -1) },
    { ...good, mac: `${good.mac.slice(0, -1)}x` },
    { ...good, mac: "" },
    { ...good, mac: 7 },
    { ...good, nonce: "" },
    { ...good, nonce: hexOf(prng, 32) },
    { server_id: good.server_id },
  ];
  const nameless = [
    { ...good, server_id: "" },
    { ...good, server_id: 7 },
    { nonce, mac: good.mac },
    [good],
    null,
    "hello",
  ];
  const payload = prng.pick([...(secret === "" ? [] : forged), ...nameless]);
  const long = { ...good, server_id: "x".repeat(70_000) };
  const text = JSON.stringify(prng.chance(0.05) ? long : payload);
  return frameBytes(TYPE.hello, prng.chance(0.1) ? text.slice(1) : text);
}

function oddFrame({ prng, id }: Means): Uint8Array {
  const queue = `guest-${id}-${prng.integer(0, 3)}`;
  const tenant = prng.pick([
    undefined,
    "",
    7,
    "00000000-0000-0000-0000-000000000001",
    "AABBCCDD-1122-3344-5566-778899AABBCC",
    "not-a-uuid",
  ]);
  const items = [{ queue, tenant }, { queue: "" }, 7, null, { queue, partition: 3 }, {
    queue,
    group: "g",
  }];
  const [type, payload] = prng.pick<readonly [number, unknown]>([
    [TYPE.heartbeat, { server_id: "whoever" }],
    [TYPE.heartbeat, 7],
    [TYPE.available, { queue, tenant, new_key: [1] }],
    [TYPE.available, { queue: "" }],
    [TYPE.available, { partition: "p" }],
    [TYPE.availableBatch, { items }],
    [TYPE.availableBatch, { items: [] }],
    [TYPE.availableBatch, { items: {} }],
    [TYPE.dirtyBatch, { items: [...items, { queue, partition: "p", group: "" }] }],
    [TYPE.configSet, { queue: "", tenant }],
    [TYPE.configDelete, { queue, tenant }],
    [TYPE.configDelete, {}],
    [TYPE.maintenance, { enabled: prng.chance(0.5) }],
    [TYPE.maintenance, { enabled: "yes" }],
    [TYPE.popMaintenance, { enabled: prng.chance(0.5) }],
    [prng.pick([0, 6, 99, 255]), { queue }],
  ]);
  const text = JSON.stringify(payload);
  if (prng.chance(0.1)) return frameBytes(type, text.slice(0, -1));
  if (prng.chance(0.05)) return frameBytes(type, "");
  return frameBytes(type, text);
}

function hexOf(prng: Prng, digits: number): string {
  return Array.from({ length: digits }, () => prng.integer(0, 15).toString(16)).join("");
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let start = 0;
  for (const part of parts) {
    bytes.set(part, start);
    start += part.length;
  }
  return bytes;
}
