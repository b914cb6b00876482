import { createHash } from "node:crypto";
import { decodeHex } from "../../protocol/hex.ts";
import type { Segment } from "./segment.ts";
import type { SpoolPartition } from "./spool_record.ts";

/** What a {@linkcode SpoolLog} is made of. */
export interface SpoolLogOptions {
  /** A lowercase UUID, random. PostgreSQL knows the log by it. */
  readonly id: string;
  /** Names the key that seals its records; undefined where they are not sealed. */
  readonly keyId: string | undefined;
  /** Its records cannot be opened with the key of this process. */
  readonly isLocked: boolean;
  /** The position that the sink is known to hold. */
  readonly stored?: number;
}

/**
 * What one process appended to a spool: segments, and which partitions have records in them.
 *
 * Every process begins a log of its own, with a new id, at its first append. So positions are never
 * given twice, whatever a crash took, and all records of a log are sealed with one key.
 */
export class SpoolLog {
  /** A lowercase UUID, random. */
  readonly id: string;
  /** Names the key that seals its records; undefined where they are not sealed. */
  readonly keyId: string | undefined;
  /** Its records cannot be opened with the key of this process. */
  readonly isLocked: boolean;
  /** The bytes of the id, which stand before each record. */
  readonly marker: Uint8Array;
  /** Those that are not drained and removed, oldest first. */
  readonly segments: Segment[] = [];
  /** The position up to which the sink has stored it; undefined while that is not known. */
  stored: number | undefined;
  /** How many records wait to be written. */
  queuedCount = 0;
  /** The next record cannot be opened with the key of this process; nothing more drains here. */
  isStuck = false;
  /** By lane, the highest position that was appended. */
  readonly #lanes = new Map<number, number>();

  /** An empty log. */
  constructor({ id, keyId, isLocked, stored }: SpoolLogOptions) {
    const marker = decodeHex(id.replaceAll("-", ""));
    if (marker?.length !== 16) throw new TypeError(`A log's id must be a UUID, got "${id}"`);
    this.id = id;
    this.keyId = keyId;
    this.isLocked = isLocked;
    this.marker = marker;
    this.stored = stored;
  }

  /** How many records wait to be drained, those that are not written yet included. */
  get pendingCount(): number {
    return this.segments.reduce((sum, segment) => sum + segment.pendingCount, this.queuedCount);
  }

  /** How many bytes of its files wait to be drained. */
  get pendingBytes(): number {
    return this.segments.reduce((sum, segment) => sum + segment.pendingBytes, 0);
  }

  /** Whether there is anything in its files that can be drained or removed. */
  get hasWork(): boolean {
    return !this.isStuck && this.segments.some((segment) => segment.isEnded || !segment.isDrained);
  }

  /**
   * The number that stands for a partition in this log. It is hashed with the log's id, so that no
   * producer can make names that collide with those of another. A collision by chance (2^-48) makes
   * one partition wait for the other and does no harm.
   */
  laneOf({ tenant, queue, partition }: SpoolPartition): number {
    return createHash("sha256").update(this.marker)
      .update(JSON.stringify([tenant, queue, partition])).digest().readUIntBE(0, 6);
  }

  /** A record of `lane` is on its way to the file, or was found there. */
  hold(lane: number, position: number): void {
    this.#lanes.set(lane, position);
  }

  /** The record of `lane` at `position` is done with. */
  release(lane: number, position: number): void {
    if (this.#lanes.get(lane) === position) this.#lanes.delete(lane);
  }

  /** Where no record waits here any more, no partition does, whatever was lost on the way. */
  releaseIfEmpty(): void {
    if (this.pendingCount === 0) this.#lanes.clear();
  }

  /** Whether a record of the partition waits here. */
  holds(partition: SpoolPartition): boolean {
    if (this.#lanes.size === 0) return false;
    // A record that was damaged is never released, but the position passes it.
    return (this.#lanes.get(this.laneOf(partition)) ?? 0) > (this.stored ?? 0);
  }

  /** The sink holds another position than was thought: reads everything that is left once more. */
  rewind(stored: number): void {
    this.stored = stored;
    for (const segment of this.segments) segment.rewind();
  }
}
