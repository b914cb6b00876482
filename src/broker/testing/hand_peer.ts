import { encodeFrame, FRAME_TYPE } from "../../protocol/frame.ts";
import { encodeHello } from "../../protocol/hello.ts";
import { framesIn, payloadOf } from "../../testing/test_mesh.ts";
import { RawListener, RawPeer } from "../../simulation/raw_peer.ts";
import type { Cluster } from "./cluster.ts";

/** A frame by hand. */
export interface HandFrame {
  /** Its type. */
  readonly type: number;
  /** Its payload, as JSON can say it. */
  readonly payload: unknown;
}

/** A peer of a replica, of which every frame is spoken and read by hand. */
export class HandPeer {
  readonly #cluster: Cluster;
  readonly #dialled: RawPeer;

  private constructor(cluster: Cluster, dialled: RawPeer) {
    this.#cluster = cluster;
    this.#dialled = dialled;
  }

  /** Dials the replica on the host `to` and is let in. */
  static async dial(cluster: Cluster, to: string): Promise<HandPeer> {
    const dialled = await RawPeer.dial(cluster.network.host("x"), { host: to, port: 6633 });
    await dialled.send(encodeHello({ serverId: "x", nonce: "0".repeat(32), mac: "" }));
    await cluster.pass(10);
    return new HandPeer(cluster, dialled);
  }

  /** Sends frames, and lets them arrive. */
  async send(...frames: readonly HandFrame[]): Promise<void> {
    for (const { type, payload } of frames) {
      await this.#dialled.send(encodeFrame(type, JSON.stringify(payload)));
    }
    await this.#cluster.pass(10);
  }

  /** Hangs up. */
  close(): void {
    this.#dialled.close();
  }
}

/** Where a replica's frames arrive. */
export class HandListener {
  readonly #listener: RawListener;

  private constructor(listener: RawListener) {
    this.#listener = listener;
  }

  /** Listens on the host `host`. */
  static async bind({ network }: Cluster, host: string): Promise<HandListener> {
    return new HandListener(await RawListener.bind(network.host(host), 6633));
  }

  /** What has arrived of one type. */
  payloads(type: number): Record<string, unknown>[] {
    return this.#listener.peers.flatMap((peer) => framesIn(peer.received))
      .filter((frame) => frame.type === type).map(payloadOf);
  }

  /** The items of the dirty hints that have arrived. */
  dirtyItems(): unknown[] {
    return this.payloads(FRAME_TYPE.HOTLIST_DIRTY_BATCH).flatMap(({ items }) => items as unknown[]);
  }

  /** Hangs up. */
  close(): void {
    this.#listener.close();
  }
}
