import { randomBytes } from "node:crypto";
import type { Capability } from "./case.ts";
import { PeerDialer } from "./harness/dialer.ts";
import { expectThat, Failure, HarnessError } from "./harness/failure.ts";
import { frame, FRAME_TYPES } from "./harness/frame.ts";
import { helloFrame, validHello } from "./harness/hello.ts";
import type { PeerListener, ReceivedFrame } from "./harness/listener.ts";
import { counter, type Stats, type TargetNode } from "./harness/target_node.ts";
import type { Transcript } from "./harness/transcript.ts";
import { pause, until } from "./harness/until.ts";
import type { Stage, StartDescription } from "./stage.ts";

/** What a {@linkcode CaseContext} is made of. */
export interface CaseContextOptions {
  /** What runs. */
  readonly stage: Stage;
  /** What the target has. */
  readonly capabilities: ReadonlySet<Capability>;
  /** By what all deadlines are multiplied. */
  readonly scale: number;
  /** Ends the case. */
  readonly signal: AbortSignal;
  /** What happens in it. */
  readonly transcript: Transcript;
}

/** How long a case waits for something to happen, in milliseconds, before scaling. */
const WAIT_MS = 10_000;

/** What a case works with. */
export class CaseContext {
  /** What the target has. */
  readonly capabilities: ReadonlySet<Capability>;
  /** By what all deadlines are multiplied. */
  readonly scale: number;
  /** Aborted when the case must end. */
  readonly signal: AbortSignal;
  /** What an INFO case has found out, in sentences. */
  readonly notes: string[] = [];
  readonly #stage: Stage;
  readonly #transcript: Transcript;
  readonly #dialers: PeerDialer[] = [];
  readonly #downOnPurpose = new Set<TargetNode>();

  /** Made by the runner. */
  constructor({ stage, capabilities, scale, signal, transcript }: CaseContextOptions) {
    this.capabilities = capabilities;
    this.scale = scale;
    this.signal = signal;
    this.#stage = stage;
    this.#transcript = transcript;
  }

  /** The node that is judged: the topology's first. */
  get node(): TargetNode {
    return this.#stage.nodes[0]!;
  }

  /** Two nodes, of a topology that has as many. */
  get twoNodes(): readonly [TargetNode, TargetNode] {
    const [first, second] = this.#stage.nodes;
    if (!first || !second) throw new HarnessError("the topology does not have two nodes");
    return [first, second];
  }

  /** The topology's nodes, in its order. */
  get nodes(): readonly TargetNode[] {
    return this.#stage.nodes;
  }

  /** Whether others may use the node too, so that what it counts is not the suite's alone. */
  get isShared(): boolean {
    return this.#stage.isShared;
  }

  /** The suite as the node's first configured peer. */
  get peer(): PeerListener {
    return this.#stage.peers[0]!;
  }

  /** The peers that the suite plays, in the topology's order. */
  get peers(): readonly PeerListener[] {
    return this.#stage.peers;
  }

  /** The nodes that the case has taken down and not brought back. */
  get downOnPurpose(): ReadonlySet<TargetNode> {
    return this.#downOnPurpose;
  }

  /** A name that nobody has used, for a queue or an id. */
  uniqueName(prefix: string): string {
    return `${prefix}-${randomBytes(6).toString("hex")}`;
  }

  /** Tells the report what was seen, where no requirement says what it must be. */
  note(sentence: string): void {
    this.notes.push(sentence);
  }

  /** Writes a line into the transcript. */
  record(line: string): void {
    this.#transcript.add(line);
  }

  /** Looks until what is waited for holds; see {@linkcode until}. Ten seconds unless told otherwise. */
  until<T>(
    expected: string,
    look: () => T | Promise<T>,
    accept: (value: T) => boolean,
    options: { timeoutMs?: number; describe?: (value: T) => string } = {},
  ): Promise<T> {
    return until(expected, look, accept, {
      timeoutMs: (options.timeoutMs ?? WAIT_MS) * this.scale,
      signal: this.signal,
      describe: options.describe as ((value: never) => string) | undefined,
    });
  }

  /** Lets time pass where the passing itself is what a requirement speaks of; never as evidence. */
  pause(ms: number): Promise<void> {
    return pause(ms, this.signal);
  }

  /**
   * Waits for a promise.
   *
   * @throws {Failure} If it does not settle within ten seconds, unless told otherwise.
   */
  async within<T>(expected: string, promise: Promise<T>, timeoutMs = WAIT_MS): Promise<T> {
    const waiting = new AbortController();
    const signal = AbortSignal.any([waiting.signal, this.signal]);
    const late = pause(timeoutMs * this.scale, signal).then(() => {
      throw new Failure(`${expected} within ${timeoutMs * this.scale} ms`, "nothing of the kind");
    });
    // Whichever loses must not go unhandled.
    late.catch(() => {});
    try {
      return await Promise.race([promise, late]);
    } finally {
      waiting.abort();
    }
  }

  /** Connects to a node's mesh port as a peer and says nothing yet. */
  async dial(node: TargetNode = this.node): Promise<PeerDialer> {
    const dialer = await PeerDialer.connect({
      host: node.meshHost,
      port: node.meshPort,
      label: `dialer ${this.#dialers.length}`,
      record: (line) => this.#transcript.add(line),
      signal: this.signal,
    });
    this.#dialers.push(dialer);
    return dialer;
  }

  /** Connects to a node's mesh port and says a HELLO that it must accept. */
  async dialAsPeer(
    { node = this.node, serverId = this.uniqueName("peer") }: {
      node?: TargetNode;
      serverId?: string;
    } = {},
  ): Promise<PeerDialer> {
    const dialer = await this.dial(node);
    await dialer.send(helloFrame(validHello(node.secret, serverId)));
    return dialer;
  }

  /** Waits until the node has ended a connection. */
  async expectClosed(dialer: PeerDialer, why: string): Promise<void> {
    await this.within(`the node to close the connection ${why}`, dialer.ended);
  }

  /** A node's stats. */
  stats(node: TargetNode = this.node): Promise<Stats> {
    return node.stats(this.signal);
  }

  /** One number of a node's stats. */
  async counter(name: string, node: TargetNode = this.node): Promise<number> {
    return counter(await this.stats(node), name);
  }

  /**
   * Does something that makes the node receive frames and waits until it has counted just so many
   * of them: first for as many, then for that of a HEARTBEAT on a connection of its own, which comes
   * behind, so that one too many would be seen. Where others use the node too, as many are enough.
   */
  async expectReceived(
    count: number,
    act: () => Promise<void>,
    node: TargetNode = this.node,
  ): Promise<void> {
    const before = await this.counter("messages_received", node);
    await act();
    await this.expectReceivedSince(before, count, node);
  }

  /** As {@linkcode expectReceived}, where what makes them come is under way already. */
  async expectReceivedSince(
    before: number,
    count: number,
    node: TargetNode = this.node,
  ): Promise<void> {
    const look = () => this.counter("messages_received", node);
    const describe = (seen: number) => `${seen - before} more`;
    await this.until(
      `messages_received to go up by ${count}`,
      look,
      (seen) => seen - before >= count,
      { describe },
    );
    const marker = await this.dialAsPeer({ node });
    await marker.send(frame(FRAME_TYPES.HEARTBEAT, { server_id: "marker" }));
    const after = await this.until(
      `messages_received to count ${count} and the HEARTBEAT that was sent behind`,
      look,
      (seen) => seen - before >= count + 1,
      { describe },
    );
    marker.destroy();
    if (this.#stage.isShared) return;
    expectThat(
      after - before === count + 1,
      `messages_received to go up by ${count}, and by 1 for the HEARTBEAT that was sent behind`,
      `${after - before} more`,
    );
  }

  /** Waits until a node's stats show this many peers connected. */
  async untilConnected(node: TargetNode = this.node, count?: number): Promise<void> {
    await this.until(
      `node ${node.name} to be connected to ${count ?? "all of its"} peers`,
      async () => peersOf(await this.stats(node)),
      (peers) =>
        peers.filter((peer) => peer["connected"] === true).length === (count ?? peers.length) &&
        peers.length > 0,
    );
  }

  /** Waits until the suite's peer holds a connection of the node whose HELLO has come. */
  async untilDialled(peer: PeerListener = this.peer): Promise<void> {
    await this.until(
      `the node to dial ${peer.address} and to say HELLO`,
      () => peer.connections.findLast(({ ended }) => !ended)?.frames.length ?? 0,
      (frames) => frames > 0,
      { describe: () => `${peer.connections.length} connections, ${peer.openCount} of them open` },
    );
  }

  /** Waits for a frame among those that a peer of the suite received after a mark. */
  async frameAfter(
    mark: number,
    expected: string,
    accept: (frame: ReceivedFrame) => boolean,
    peer: PeerListener = this.peer,
  ): Promise<ReceivedFrame> {
    const frames = await this.until(
      expected,
      () => peer.frames.slice(mark).filter(accept),
      (found) => found.length > 0,
      { describe: () => `${peer.frames.length - mark} frames, and none like that` },
    );
    return frames[0]!;
  }

  /**
   * Makes a node send one wake: by `POST /internal/api/notify`, or by a push where it has no such
   * route.
   */
  async hint(
    node: TargetNode,
    { queue, partition }: { queue: string; partition?: string },
  ): Promise<void> {
    if (this.capabilities.has("notify")) {
      const body = { queue, ...(partition === undefined ? {} : { partition }) };
      const reply = await node.request("/internal/api/notify", {
        method: "POST",
        body,
        signal: this.signal,
      });
      expectThat(reply.status === 200, "POST /internal/api/notify to answer 200", reply);
    } else {
      await this.push(node, [{ queue, ...(partition === undefined ? {} : { partition }) }]);
    }
  }

  /**
   * Pushes messages and resolves when each is stored: answered `queued`, or `buffered` and then
   * drained. Where `buffered` is asked for, it resolves when all were answered so.
   */
  async push(
    node: TargetNode,
    items: readonly PushItem[],
    { status = "queued", tenant }: { status?: "queued" | "buffered"; tenant?: string } = {},
  ): Promise<void> {
    const reply = await node.request("/api/v1/push", {
      method: "POST",
      body: { items: items.map((item) => ({ payload: {}, ...item })) },
      ...(tenant === undefined ? {} : { headers: { "x-queen-tenant": tenant } }),
      signal: this.signal,
    });
    const results = Array.isArray(reply.json) ? reply.json as { status?: unknown }[] : [];
    const isBuffered = results.some((result) => result.status === "buffered");
    expectThat(
      reply.status === 201 && results.length === items.length &&
        results.every((result) => result.status === status || result.status === "buffered"),
      `POST /api/v1/push to answer 201 with ${items.length} results of status "${status}"`,
      `${reply.status} ${reply.text}`,
    );
    // A node may buffer at any time: until it knows the modes, or where PostgreSQL has been slow.
    if (status === "queued" && isBuffered) await this.#untilDrained(node);
  }

  /** Starts a node of the case's own; it is stopped when the case ends. */
  startNode(description: StartDescription = {}): Promise<TargetNode> {
    return this.#stage.startNode(description, this.signal);
  }

  /** Makes a node of the case's own without starting it. */
  makeNode(description: StartDescription = {}): Promise<TargetNode> {
    return this.#stage.makeNode(description);
  }

  /** Makes a peer of the case's own that listens; it is stopped when the case ends. */
  async startPeer(label = "own peer"): Promise<PeerListener> {
    const peer = await this.#stage.makePeer(label);
    await peer.listen();
    return peer;
  }

  /** Makes a peer of the case's own that does not listen yet. */
  makePeer(label = "own peer"): Promise<PeerListener> {
    return this.#stage.makePeer(label);
  }

  /** Ends a node at once, as a crash would: from here on it is expected to be down. */
  async kill(node: TargetNode): Promise<void> {
    this.#downOnPurpose.add(node);
    await node.kill();
  }

  /** Brings back a node that {@linkcode kill} ended. */
  async restart(node: TargetNode): Promise<void> {
    await node.start(this.signal);
    this.#downOnPurpose.delete(node);
  }

  /** Waits until what a node has buffered is stored. */
  async #untilDrained(node: TargetNode): Promise<void> {
    await this.until(
      `what node ${node.name} has answered as buffered to be stored, since no maintenance mode is on`,
      () => node.request("/api/v1/system/maintenance", { signal: this.signal }),
      ({ json }) => (json as { bufferedMessages?: unknown } | undefined)?.bufferedMessages === 0,
      { describe: ({ status, text }) => `${status} ${text}` },
    );
  }

  /** Closes the connections that the case has made. */
  close(): void {
    for (const dialer of this.#dialers) dialer.destroy();
  }
}

/** A message to push; its payload is `{}` where it is left out. */
export interface PushItem {
  /** The queue's name. */
  readonly queue: string;
  /** The partition's name; the default one where it is left out. */
  readonly partition?: string;
  /** Any JSON value. */
  readonly payload?: unknown;
  /** What duplicates are told by. */
  readonly transactionId?: string;
}

/**
 * The peers of a node's stats.
 *
 * @throws {Failure} If they are no list of objects.
 */
export function peersOf(stats: Stats): readonly Readonly<Record<string, unknown>>[] {
  const { peers } = stats;
  expectThat(
    Array.isArray(peers) && peers.every((peer) => typeof peer === "object" && peer !== null),
    "peers in the stats to be a list of objects",
    stats,
  );
  return peers;
}
