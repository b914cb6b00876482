// A node of the mesh protocol in one file, for whoever writes another implementation. It has no
// broker: it meshes, sends a hint when it is asked to, and shows what it has heard. Node 20,
// nothing else. Read it from top to bottom.

import { Buffer } from "node:buffer";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { createServer as createHttpServer } from "node:http";
import net from "node:net";
import { hostname } from "node:os";
import process from "node:process";

const log = (text) => console.error(text);

// ---------------------------------------------------------------------------- Configuration

const config = readConfig();

/** The first of these variables that is set and not empty. */
function env(...names) {
  return names.map((name) => process.env[name]).find((value) => value) ?? "";
}

function readConfig() {
  try {
    const meshPort = readInteger(6633, 65_535, "QUEEN_MESH_PORT", "QUEEN_UDP_NOTIFY_PORT");
    const peers = env("QUEEN_MESH_PEERS", "QUEEN_UDP_PEERS").split(",")
      .flatMap((item) => readPeer(item, meshPort));
    return {
      // Without peers there is no mesh, just as if it were switched off.
      enabled: readBoolean(true, "QUEEN_SYNC_ENABLED") && peers.length > 0,
      peers,
      meshPort,
      secret: env("QUEEN_SYNC_SECRET"),
      serverId: env("QUEEN_SERVER_ID") || hostname() || `queen-${randomBytes(4).toString("hex")}`,
      // No timer of Node's is longer than 2 ** 31 - 1 ms.
      heartbeatMs: readInteger(1000, 2 ** 31 - 1, "QUEEN_SYNC_HEARTBEAT_MS"),
      deadMs: readInteger(5000, 2 ** 31 - 1, "QUEEN_SYNC_DEAD_THRESHOLD_MS"),
      host: env("HOST") || "0.0.0.0",
      port: readInteger(6632, 65_535, "PORT"),
    };
  } catch (error) {
    log(error.message);
    process.exit(1);
  }
}

function readBoolean(byDefault, name) {
  const text = env(name).trim().toLowerCase();
  if (text === "") return byDefault;
  if (["true", "1", "yes", "on"].includes(text)) return true;
  if (["false", "0", "no", "off"].includes(text)) return false;
  throw new Error(`${name} is ${JSON.stringify(env(name))}: use true or false`);
}

function readInteger(byDefault, max, ...names) {
  const text = env(...names).trim();
  if (text === "") return byDefault;
  if (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= max) return Number(text);
  throw new Error(`${names.join(" or ")} is ${JSON.stringify(text)}: use 1 to ${max}`);
}

/** `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address; nothing for an empty item. */
function readPeer(item, meshPort) {
  const text = item.trim().replace(/^https?:\/\//i, "").trim();
  if (text === "") return [];
  if (net.isIPv6(text)) return [{ host: text, port: meshPort }];
  const [, v6, name, tail] = /^(?:\[([^\]]*)\]|(.*?))(?::([^:]*))?$/s.exec(text);
  const host = v6 ?? name;
  if (host === "") {
    log(`warning: the peer ${JSON.stringify(text)} has no host and is left out`);
    return [];
  }
  if (tail === undefined) return [{ host, port: meshPort }];
  const port = /^\d+$/.test(tail) ? Number(tail) : 0;
  if (port >= 1 && port <= 65_535) return [{ host, port }];
  log(`warning: the peer ${JSON.stringify(text)} has no usable port: ${meshPort} is taken`);
  return [{ host, port: meshPort }];
}

// ----------------------------------------------------------------------------------- Frames

const MESSAGE_AVAILABLE = 1;
const HEARTBEAT = 3;
const HELLO = 4;
const MAINTENANCE_MODE_SET = 40;
const POP_MAINTENANCE_MODE_SET = 41;

const DEFAULT_TENANT = "00000000-0000-0000-0000-000000000001";
const FRAME_BYTES_MAX = 16 * 1024 * 1024;

function encodeFrame(type, fields) {
  const payload = Buffer.from(JSON.stringify(fields));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(1 + payload.length);
  head[4] = type;
  return Buffer.concat([head, payload]);
}

/**
 * Cuts a stream into frames, each byte copied once, whatever the segments are. What it returns
 * takes a segment and says whether to go on: not after a bad length, nor where `onFrame` says no.
 */
function frameReader({ bytesMax, onFrame }) {
  const head = Buffer.alloc(4);
  let body;
  let filled = 0;
  return function read(segment) {
    for (let at = 0; at < segment.length;) {
      const part = body ?? head;
      const count = segment.copy(part, filled, at);
      at += count;
      filled += count;
      if (filled < part.length) return true;
      filled = 0;
      if (body === undefined) {
        const length = head.readUInt32BE();
        if (length === 0 || length > bytesMax()) return false;
        // Its pages are real only once they are written to: announcing much costs nothing yet.
        body = Buffer.allocUnsafe(length);
      } else {
        body = undefined;
        if (!onFrame(part[0], part.subarray(1))) return false;
      }
    }
    return true;
  };
}

/** The object that a payload spells, or undefined: not JSON, no object, or nested too deep. */
function parseObject(payload) {
  try {
    const value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(payload));
    return typeof value === "object" && !Array.isArray(value) ? value ?? undefined : undefined;
  } catch {
    return undefined;
  }
}

const isFilled = (value) => typeof value === "string" && value !== "";

// -------------------------------------------------------------------------------- Handshake

/** Over the nonce's hex text, not over the bytes that it spells. */
const macOf = (nonce) => createHmac("sha256", config.secret).update(nonce).digest();

function helloFrame() {
  const nonce = randomBytes(16).toString("hex");
  const mac = config.secret === "" ? "" : macOf(nonce).toString("hex");
  return encodeFrame(HELLO, { server_id: config.serverId, nonce, mac });
}

/** The server_id of a first frame that lets its sender in, else undefined. */
function verifyHello(type, payload) {
  const { server_id, nonce, mac } = type === HELLO && parseObject(payload) || {};
  if (!isFilled(server_id)) return undefined;
  if (config.secret === "") return server_id;
  if (!isFilled(nonce) || !/^[0-9a-f]{64}$/i.test(typeof mac === "string" ? mac : "")) {
    return undefined;
  }
  return timingSafeEqual(macOf(nonce), Buffer.from(mac, "hex")) ? server_id : undefined;
}

// --------------------------------------------------------------------------------- Listener

const HELLO_BYTES_MAX = 64 * 1024;
const HELLO_MS_MAX = 5000;
const BIND_RETRY_MS = 5000;

const modes = { maintenance_mode: false, pop_maintenance_mode: false };
let messagesReceived = 0;
let handshakeFailures = 0;

const listener = net.createServer({ noDelay: true, keepAlive: true }, accept);

/** Tries to bind the mesh port, now and until it works; `onTried` hears of each attempt's end. */
function bind(onTried) {
  listener.on("listening", onTried);
  listener.on("error", (error) => {
    log(`warning: the mesh port ${config.meshPort}: ${error.message}`);
    if (listener.listening) return;
    setTimeout(() => listener.listen(config.meshPort), BIND_RETRY_MS);
    onTried();
  });
  listener.listen(config.meshPort);
}

/** Only reads: nothing is ever written on a connection that was accepted. */
function accept(socket) {
  let serverId;
  const refuse = () => {
    if (serverId === undefined) handshakeFailures++;
    socket.destroy();
  };
  const deadline = setTimeout(refuse, HELLO_MS_MAX);
  const read = frameReader({
    bytesMax: () => serverId === undefined ? HELLO_BYTES_MAX : FRAME_BYTES_MAX,
    onFrame(type, payload) {
      if (serverId === undefined) {
        serverId = verifyHello(type, payload);
        if (serverId === undefined) return false;
        clearTimeout(deadline);
      } else {
        messagesReceived++;
        apply(type, payload);
      }
      heard(serverId);
      return true;
    },
  });
  socket.on("data", (segment) => read(segment) || refuse());
  socket.on("error", (error) => log(`an accepted connection: ${error.message}`));
  socket.on("close", () => clearTimeout(deadline));
}

/** A node without queues has a use for flips alone; a second HELLO is no flip either. */
function apply(type, payload) {
  const mode = {
    [MAINTENANCE_MODE_SET]: "maintenance_mode",
    [POP_MAINTENANCE_MODE_SET]: "pop_maintenance_mode",
  }[type];
  if (mode === undefined) return;
  const enabled = parseObject(payload)?.enabled;
  if (typeof enabled === "boolean") modes[mode] = enabled;
}

// ------------------------------------------------------------------------ Peers and dialing

const QUEUE_FRAMES_MAX = 1024;
const QUEUE_BYTES_MAX = 32 * 1024 * 1024;
const WRITE_BYTES_MAX = 16 * 1024;
const DIAL_MS_MAX = 5000;
const ADDRESS_MS_MAX = 1000;
const BACKOFF_MS_MIN = 250;
const BACKOFF_MS_MAX = 5000;

/** One configured peer: dialled for ever, and only ever written to. */
class Peer {
  sent = 0;
  dropped = 0;
  lastError = null;
  /** The connection, while there is one. */
  socket;
  /** The frames that the kernel has not taken; the first of them is being written. */
  queue = [];
  #queueBytes = 0;
  #isWriting = false;
  #backoffMs = BACKOFF_MS_MIN;

  constructor({ host, port }) {
    this.host = host;
    this.port = port;
  }

  /** Never waits: what cannot be queued is dropped. */
  send(frame) {
    if (
      this.socket === undefined || this.queue.length === QUEUE_FRAMES_MAX ||
      this.#queueBytes + frame.length > QUEUE_BYTES_MAX
    ) {
      this.dropped++;
      return;
    }
    this.queue.push(frame);
    this.#queueBytes += frame.length;
    if (!this.#isWriting) this.#writeNext();
  }

  dial() {
    const { host, port } = this;
    // Looks the name up each time, and goes through all of its addresses.
    const socket = net.connect({
      host,
      port,
      noDelay: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: ADDRESS_MS_MAX,
    });
    const deadline = setTimeout(
      () => socket.destroy(new Error(`no answer within ${DIAL_MS_MAX} ms`)),
      DIAL_MS_MAX,
    );
    let heartbeats;
    let connectedAt;
    let failure;
    socket.on("connect", () => {
      clearTimeout(deadline);
      connectedAt = performance.now();
      this.socket = socket;
      this.#write(helloFrame(), () => this.#writeNext());
      heartbeats = setInterval(
        () => this.send(encodeFrame(HEARTBEAT, { server_id: config.serverId })),
        config.heartbeatMs,
      );
    });
    socket.on("error", (error) => failure = error.message || error.code);
    // A peer says nothing, but its end is seen only by reading.
    socket.resume();
    socket.on("end", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(deadline);
      clearInterval(heartbeats);
      const lastedMs = connectedAt === undefined ? 0 : performance.now() - connectedAt;
      this.#disconnected();
      this.#redial(lastedMs > BACKOFF_MS_MAX);
      this.lastError = failure ?? `closed by the peer after ${Math.round(lastedMs)} ms` +
          (lastedMs > BACKOFF_MS_MAX ? "" : ": do the secrets match?");
      log(`peer ${host}:${port}: ${this.lastError}`);
    });
  }

  /** What waits is stale once the peer is back, so that it is dropped now. */
  #disconnected() {
    this.dropped += this.queue.length;
    this.queue = [];
    this.#queueBytes = 0;
    this.#isWriting = false;
    this.socket = undefined;
  }

  /** A wrong secret shows only as an early close, so that not every connection proves itself. */
  #redial(hasProved) {
    if (hasProved) this.#backoffMs = BACKOFF_MS_MIN;
    setTimeout(() => this.dial(), this.#backoffMs * (1 - Math.random() / 5));
    this.#backoffMs = Math.min(2 * this.#backoffMs, BACKOFF_MS_MAX);
  }

  #writeNext() {
    const [frame] = this.queue;
    if (frame === undefined) return;
    this.#write(frame, () => {
      this.queue.shift();
      this.#queueBytes -= frame.length;
      this.sent++;
      this.#writeNext();
    });
  }

  /**
   * One write at a time, since Node keeps without limit what the kernel does not take; and one
   * frame at a time, so that each is known to be sent or not. A long one goes in parts, so that
   * a slow peer, which takes some of it, is told from one that takes nothing.
   */
  #write(bytes, onTaken) {
    const { socket } = this;
    this.#isWriting = true;
    const stalled = setTimeout(
      () => socket.destroy(new Error(`took no byte for ${config.deadMs} ms`)),
      config.deadMs,
    );
    socket.write(bytes.subarray(0, WRITE_BYTES_MAX), (error) => {
      clearTimeout(stalled);
      // Where it failed, "close" comes and drops the frame.
      if (error || this.socket !== socket) return;
      this.#isWriting = false;
      if (bytes.length > WRITE_BYTES_MAX) this.#write(bytes.subarray(WRITE_BYTES_MAX), onTaken);
      else onTaken();
    });
  }
}

const peers = config.enabled ? config.peers.map((peer) => new Peer(peer)) : [];

// --------------------------------------------------------------------------------- Liveness

const SERVERS_MAX = 64;
const FORGET_MS = 600_000;
const SWEEP_MS = 1000;

/** By the server_id of their HELLO: when each was last heard. The longest silent come first. */
const servers = new Map();

/** Any frame is a sign of life. */
function heard(id) {
  const isAlive = servers.get(id)?.isAlive ?? false;
  if (!isAlive) log(`server ${id} is alive`);
  servers.delete(id);
  servers.set(id, { at: performance.now(), isAlive: true });
  if (servers.size > SERVERS_MAX) servers.delete(servers.keys().next().value);
}

function sweep() {
  for (const [id, server] of servers) {
    const silentMs = performance.now() - server.at;
    if (server.isAlive && silentMs > config.deadMs) {
      server.isAlive = false;
      log(`server ${id} is dead: no frame for ${Math.round(silentMs)} ms`);
    }
    if (silentMs > config.deadMs + FORGET_MS) servers.delete(id);
  }
}

// ------------------------------------------------------------------------------------- HTTP

const BODY_BYTES_MAX = 1024 * 1024;

const routes = {
  "GET /health": () => [200, { status: "healthy" }],
  "GET /internal/api/shared-state/stats": () => [200, stats()],
  "GET /internal/api/inter-instance/stats": () => [200, stats()],
  "GET /api/v1/system/shared-state": () => [
    200,
    { enabled: false, reason: "single_node_segments_broker", ...modes },
  ],
  "POST /internal/api/notify": notify,
};

function stats() {
  if (!config.enabled) return { enabled: false, reason: "no_peers", ...modes };
  sweep();
  const heardFrom = [...servers].map(([server_id, { at, isAlive }]) => ({
    server_id,
    alive: isAlive,
    last_frame_ms_ago: Math.round(performance.now() - at),
  }));
  const alive = heardFrom.filter((server) => server.alive).length;
  return {
    server_id: config.serverId,
    transport: "tcp-mesh",
    port: config.meshPort,
    peer_count: peers.length,
    peers: peers.map(({ host, port, socket, lastError, sent, dropped, queue }) => ({
      host,
      port,
      connected: socket !== undefined,
      resolved: socket !== undefined,
      resolved_ip: socket?.remoteAddress ?? null,
      last_error: lastError,
      messages_sent: sent,
      messages_dropped: dropped,
      queued: queue.length,
    })),
    servers: heardFrom,
    servers_alive: alive,
    servers_dead: heardFrom.length - alive,
    messages_sent: peers.reduce((sum, { sent }) => sum + sent, 0),
    messages_received: messagesReceived,
    messages_dropped: peers.reduce((sum, { dropped }) => sum + dropped, 0),
    signature_failures: handshakeFailures,
    handshake_failures: handshakeFailures,
    sequence_rejections: 0,
    enabled: true,
    running: listener.listening,
    ...(listener.listening ? {} : { reason: "bind_failed" }),
    ...modes,
  };
}

async function notify(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes <= BODY_BYTES_MAX) chunks.push(chunk);
  }
  if (bytes > BODY_BYTES_MAX) return [413, { error: `at most ${BODY_BYTES_MAX} bytes` }];
  const { queue, partition } = parseObject(Buffer.concat(chunks)) ?? {};
  if (!isFilled(queue)) return [400, { error: `"queue" must be a string and not empty` }];
  const frame = encodeFrame(MESSAGE_AVAILABLE, {
    queue,
    partition: typeof partition === "string" ? partition : "",
    tenant: DEFAULT_TENANT,
  });
  for (const peer of peers) peer.send(frame);
  return [200, { status: "ok" }];
}

async function answer(request, response) {
  const [path] = request.url.split("?");
  const route = Object.hasOwn(routes, `${request.method} ${path}`)
    ? routes[`${request.method} ${path}`]
    : () => [404, { error: `no route ${request.method} ${path}` }];
  const [status, body] = await route(request);
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

// ------------------------------------------------------------------------------------ Start

for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => process.exit(0));

if (config.enabled) {
  // Ready only once the port was tried, so that the first stats are right.
  await new Promise(bind);
  for (const peer of peers) peer.dial();
  setInterval(sweep, SWEEP_MS);
}

createHttpServer((request, response) => {
  answer(request, response).catch((error) => {
    log(`${request.method} ${request.url}: ${error.message}`);
    response.destroy();
  });
}).on("error", (error) => {
  log(`HTTP cannot listen on ${config.host}:${config.port}: ${error.message}`);
  process.exit(1);
}).listen(config.port, config.host);
