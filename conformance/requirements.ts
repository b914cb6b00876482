import type { Level } from "./case.ts";

/** One thing that an implementation must, or should, do. */
export interface Requirement {
  /** `FRM-1`. Of the sections without numbers (8 and 9) the suite has given its own: OBS and ENV. */
  readonly id: string;
  /** How binding it is; `info` where implementations may differ. */
  readonly level: Level;
  /** What it asks for. */
  readonly text: string;
  /** Why no case can see it, where none can. */
  readonly invisible?: string;
}

/** The requirements of one part of the protocol. */
export interface RequirementGroup {
  /** Its title. */
  readonly title: string;
  /** Them, in order. */
  readonly requirements: readonly Requirement[];
}

const must = (id: string, text: string): Requirement => ({ id, level: "must", text });
const should = (id: string, text: string): Requirement => ({ id, level: "should", text });
const info = (id: string, text: string): Requirement => ({ id, level: "info", text });

/** Every requirement, by the sections of the protocol. */
export const REQUIREMENT_GROUPS: readonly RequirementGroup[] = [
  {
    title: "Frames",
    requirements: [
      must("FRM-1", "A frame's length counts its type byte and its payload, and not itself."),
      must("FRM-2", "A frame that announces a length of 0 ends the connection."),
      must(
        "FRM-3",
        "A frame that announces more than 16 MiB (16 777 216 bytes) ends the connection, and no memory is taken for it.",
      ),
      must("FRM-4", "A frame of exactly 16 MiB is taken once the handshake is done."),
      must("FRM-5", "Frames come out the same however the stream is cut, down to single bytes."),
      must("FRM-6", "All the frames of one segment are taken, in their order."),
      must(
        "FRM-7",
        "Where a stream ends inside a frame, nothing of that frame takes effect, and the node goes on serving.",
      ),
      must("FRM-8", "A frame without a payload (length 1) is a frame like any other."),
      must(
        "FRM-9",
        "A frame of an unknown type is passed over: it counts as received and the connection stays.",
      ),
      must(
        "FRM-10",
        "A payload that is no JSON object, or has fields of the wrong types, has no effect: the frame counts as received and the connection stays.",
      ),
      must(
        "FRM-11",
        "In a batch, items that cannot be used are passed over and the others take effect.",
      ),
      must(
        "FRM-12",
        "No frame that is sent is longer than 16 MiB: a large batch is split by bytes.",
      ),
    ],
  },
  {
    title: "Handshake",
    requirements: [
      must(
        "HSK-1",
        "The first frame of whoever dials is a HELLO. Its nonce is 32 lowercase hex digits, and another one on each connection.",
      ),
      must(
        "HSK-2",
        "With a secret, the HELLO's mac is the lowercase hex of HMAC-SHA256, keyed with the secret's bytes, over the text of the nonce's digits, not over the bytes that they spell. Without a secret it is an empty string.",
      ),
      {
        ...must(
          "HSK-3",
          "Whoever listens compares the mac in constant time, before it takes any further frame.",
        ),
        invisible:
          "How long a comparison takes is lost in the noise of a network; that nothing is taken before is HSK-5.",
      },
      must(
        "HSK-4",
        "A connection is closed without a word, and handshake_failures goes up by one, where the first frame is no HELLO, or is none that is a JSON object with a server_id that is a string and not empty; with a secret also where nonce or mac is missing, or the mac is no hex or does not match.",
      ),
      must(
        "HSK-5",
        "Nothing that follows a refused HELLO takes effect, not even from the same segment.",
      ),
      must(
        "HSK-6",
        "In open mode (no secret) the HELLO is needed all the same, for its server_id; any nonce and any mac will do.",
      ),
      should("HSK-7", "A mac in uppercase hex is accepted."),
      must(
        "HSK-8",
        "A stream that ends, or breaks FRM-2 or FRM-3, before its HELLO is complete is closed. Whether it counts as a failed handshake is open.",
      ),
      must(
        "HSK-9",
        "A second HELLO on an accepted connection is passed over like a frame of unknown type.",
      ),
      must("HSK-10", "Whoever listens never writes on the connections that it accepted."),
      info(
        "HSK-B",
        "What this protocol leaves to an implementation: limits on what has not said a HELLO yet, on connections for one id, and whether a nonce is taken twice.",
      ),
    ],
  },
  {
    title: "Topology",
    requirements: [
      must(
        "TOP-1",
        "Each node listens on the mesh port and dials every peer that it is configured with.",
      ),
      must(
        "TOP-2",
        "A node sends only on connections that it dialled and receives only on those that it accepted: between two nodes there are two.",
      ),
      must(
        "TOP-3",
        "Each dial looks the host name up again and tries all of its addresses: a peer on IPv4 alone is reached although its name gives ::1 first.",
      ),
      must(
        "TOP-4",
        "After a connection fails the next attempt waits 250 ms, and from failure to failure twice as long, up to 5 s; after a connection that has held, it starts over.",
      ),
      must("TOP-5", "What was meant for a peer while it was away is never sent to it later."),
      must(
        "TOP-6",
        "A received frame is applied here and never sent on; applied twice, it changes nothing more.",
      ),
      must(
        "TOP-7",
        "With QUEEN_SYNC_ENABLED off, or without peers, no mesh port is bound and nothing is sent; pops on the same node are woken all the same.",
      ),
      {
        ...must("TOP-8", "TCP_NODELAY is set on dialled and on accepted connections."),
        invisible:
          "A socket option of one side shows itself to the other only as timing, and the suite judges no timing.",
      },
    ],
  },
  {
    title: "Sending",
    requirements: [
      must(
        "SND-1",
        "Each peer has a queue of 1024 frames at most. A frame that finds it full is dropped, and messages_dropped says so.",
      ),
      must(
        "SND-2",
        "Sending never waits: with a peer that is away, or that does not read, requests are answered as without it.",
      ),
      must("SND-3", "A slow or dead peer takes nothing from the others."),
      must("SND-4", "Frames to one peer keep their order."),
      must(
        "SND-5",
        "On each dialled connection a HEARTBEAT goes out every QUEEN_SYNC_HEARTBEAT_MS.",
      ),
      must(
        "SND-6",
        "messages_sent counts the frames that were written: heartbeats too, the HELLO not.",
      ),
    ],
  },
  {
    title: "Liveness",
    requirements: [
      must(
        "LIV-1",
        "Whether a peer is alive goes by the last frame that came from it, whatever frame that was, and by the server_id of its HELLO.",
      ),
      must(
        "LIV-2",
        "A peer that was silent for more than QUEEN_SYNC_DEAD_THRESHOLD_MS is dead, else alive; one that was never heard from is neither.",
      ),
      must(
        "LIV-3",
        "A dead peer that is heard again is alive again. (Both are logged, which no case can see.)",
      ),
      must(
        "LIV-4",
        "messages_received counts every frame behind a HELLO, also heartbeats, unknown ones and those that cannot be used.",
      ),
      info("LIV-B", "How many ids are remembered, and for how long."),
    ],
  },
  {
    title: "Tenants",
    requirements: [
      must(
        "TEN-1",
        "Each frame that is sent and names a queue names its tenant, as a lowercase UUID: the default one, 00000000-0000-0000-0000-000000000001, too.",
      ),
      must(
        "TEN-2",
        "A frame without a tenant comes from a peer that knows none: it is applied for every tenant that has a queue of that name.",
      ),
      must(
        "TEN-3",
        "A tenant that is empty, no string, or no UUID of 8-4-4-4-12 hex digits is none. Uppercase digits are as good as lowercase ones.",
      ),
      must(
        "TEN-4",
        "A tenant that is named touches that tenant alone; with tenancy off, one that is not the default touches nothing.",
      ),
      must("TEN-5", "With tenancy off, a frame without a tenant is one for the default tenant."),
    ],
  },
  {
    title: "Effects: wakes",
    requirements: [
      must(
        "WAK-1",
        "A push that is committed on one replica makes a pop that waits on another look again at once. Every push that stored something sends a frame of type 1 or 2 after its commit, one frame for all of its partitions.",
      ),
      must(
        "WAK-2",
        "Without the mesh, or with every frame lost, a waiting pop still comes back within POP_WAIT_MAX_INTERVAL_MS, with the hot list and without it.",
      ),
    ],
  },
  {
    title: "Effects: hot list",
    requirements: [
      must(
        "HOT-1",
        "A dirty hint (type 5) makes its partitions candidates on the peer. A partition that is pushed to many times within one flush window gives one hint.",
      ),
      must(
        "HOT-2",
        "A lost dirty hint is healed by the reseed from PostgreSQL, and no pop waits for that.",
      ),
    ],
  },
  {
    title: "Effects: configuration and maintenance",
    requirements: [
      must(
        "CFG-1",
        "Configuring a queue sends a frame of type 10 and deleting it one of type 11; whoever receives it forgets what it had cached of that queue.",
      ),
      must(
        "MNT-1",
        "Flipping a mode on one replica sends a frame of type 40 or 41, and all replicas follow. (A node without a database applies what the frame says.)",
      ),
      must(
        "MNT-2",
        "In maintenance mode every push goes to the disk and is answered as buffered; when the mode ends, all of it goes to PostgreSQL in order.",
      ),
      must("MNT-3", "In pop maintenance mode every pop is answered empty."),
      info(
        "MNT-B",
        "Whether a flip that comes as a frame is believed, or checked with PostgreSQL.",
      ),
    ],
  },
  {
    title: "Effects: reconcile",
    requirements: [
      must(
        "REC-1",
        "Every QUEEN_CACHE_REFRESH_INTERVAL_MS a replica reads both modes from PostgreSQL again and drops what it has cached of queues. (That the modes stay as they are where PostgreSQL cannot be reached, no case sees: the database is not the suite's to stop.)",
      ),
    ],
  },
  {
    title: "Observing",
    requirements: [
      must(
        "OBS-1",
        "GET /internal/api/shared-state/stats and GET /internal/api/inter-instance/stats answer the same body.",
      ),
      must(
        "OBS-2",
        'That body has server_id, transport "tcp-mesh", port, peer_count, peers, servers_alive, servers_dead, messages_sent, messages_received, messages_dropped, signature_failures, handshake_failures, sequence_rejections 0, enabled true, running true, maintenance_mode and pop_maintenance_mode.',
      ),
      must(
        "OBS-3",
        "Each of the peers has host, port, connected, resolved, which equals connected, and resolved_ip, which is null while it is not connected.",
      ),
      must("OBS-4", "signature_failures equals handshake_failures."),
      must(
        "OBS-5",
        'Without peers, or switched off, the body is enabled false, reason "no_peers", maintenance_mode and pop_maintenance_mode.',
      ),
      must(
        "OBS-6",
        'GET /api/v1/system/shared-state answers enabled false, reason "single_node_segments_broker", maintenance_mode and pop_maintenance_mode, whatever the mesh does.',
      ),
    ],
  },
  {
    title: "Configuration",
    requirements: [
      must(
        "ENV-1",
        "QUEEN_SYNC_ENABLED takes true, 1, yes, on, false, 0, no and off in any case; anything else stops the start.",
      ),
      must(
        "ENV-2",
        "QUEEN_UDP_PEERS and QUEEN_UDP_NOTIFY_PORT are older names of QUEEN_MESH_PEERS and QUEEN_MESH_PORT, and are read only where those are unset or empty.",
      ),
      must(
        "ENV-3",
        "QUEEN_MESH_PEERS is a list with commas: white space around an item, one http:// or https:// before it and empty items do not matter; host, host:port, [v6], [v6]:port and a bare IPv6 address are understood.",
      ),
      must(
        "ENV-4",
        "A peer without a port, or with a tail that is no port from 1 to 65535, is dialled on the mesh port.",
      ),
      must(
        "ENV-5",
        "QUEEN_SERVER_ID names the node, in its HELLO and in its stats; without it, the host name or queen- and 8 hex digits do.",
      ),
      must(
        "ENV-6",
        'Where the mesh port cannot be bound, the node serves on, dials and sends all the same, tries again, and its stats say running false and reason "bind_failed".',
      ),
    ],
  },
];

/** Every requirement, in order. */
export const REQUIREMENTS: readonly Requirement[] = REQUIREMENT_GROUPS.flatMap(
  ({ requirements }) => requirements,
);
