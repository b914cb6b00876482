/**
 * What a disk keeps, and what it forgets when the power goes.
 *
 * @module
 */

import type { Prng } from "../../../simulation/prng.ts";

/** A change of a file that is not known to be on the disk. */
export type Change =
  | { readonly kind: "write"; readonly position: number; readonly bytes: Uint8Array }
  | { readonly kind: "truncate"; readonly length: number };

/** A file. */
export class FileNode {
  /** What every reader sees. */
  content = new Uint8Array(0);
  /** What a loss of power leaves for sure. */
  #synced = new Uint8Array(0);
  /** What it may leave besides, in part. */
  #changes: Change[] = [];
  /** Changes that a failed sync gave up: a later sync does not save them. */
  readonly #givenUp = new Set<Change>();

  /** Changes what readers see. */
  change(change: Change): void {
    this.content = apply(this.content, change);
    this.#changes.push(change);
  }

  /** How many changes there are that are not synced. */
  get changeCount(): number {
    return this.#changes.length;
  }

  /** Saves the first `count` changes. */
  sync(count: number): void {
    const kept = this.#changes.splice(0, count);
    for (const change of kept) {
      if (!this.#givenUp.has(change)) this.#synced = apply(this.#synced, change);
    }
  }

  /** A sync has failed: some of what it should have saved is never saved. */
  giveUp(prng: Prng): void {
    for (const change of this.#changes) {
      if (prng.chance(0.5)) this.#givenUp.add(change);
    }
  }

  /** The power goes: of what was not synced, anything may be left, in any part. */
  loseUnsynced(prng: Prng): void {
    const mode = prng.integer(0, 3);
    const untilChange = prng.integer(0, this.#changes.length);
    let content = this.#synced;
    for (const [i, change] of this.#changes.entries()) {
      const isKept = mode === 1 || (mode === 2 && i <= untilChange) ||
        (mode === 3 && prng.chance(0.5));
      if (!isKept) continue;
      const isTorn = mode === 2 ? i === untilChange : mode === 3 && prng.chance(0.5);
      content = apply(content, isTorn ? tear(change, prng) : change);
    }
    this.content = content;
    this.#synced = content;
    this.#changes = [];
    this.#givenUp.clear();
  }
}

/** A directory. */
export class DirectoryNode {
  /** What every reader sees. */
  readonly entries = new Map<string, FileNode | DirectoryNode>();
  #synced = new Map<string, FileNode | DirectoryNode>();

  /** Saves its entries as they are now. */
  sync(): void {
    this.#synced = new Map(this.entries);
  }

  /** The power goes: each entry that was made or removed since the sync may be there or not. */
  loseUnsynced(prng: Prng): void {
    for (const name of new Set([...this.entries.keys(), ...this.#synced.keys()])) {
      const now = this.entries.get(name);
      const before = this.#synced.get(name);
      if (now !== before && prng.chance(0.5)) set(this.entries, name, before);
    }
    this.sync();
    for (const node of this.entries.values()) node.loseUnsynced(prng);
  }
}

function set(
  entries: Map<string, FileNode | DirectoryNode>,
  name: string,
  node: FileNode | DirectoryNode | undefined,
): void {
  if (node === undefined) entries.delete(name);
  else entries.set(name, node);
}

function apply(content: Uint8Array, change: Change): Uint8Array<ArrayBuffer> {
  if (change.kind === "truncate") {
    const cut = new Uint8Array(change.length);
    cut.set(content.subarray(0, change.length));
    return cut;
  }
  const end = change.position + change.bytes.length;
  const grown = new Uint8Array(Math.max(content.length, end));
  grown.set(content);
  grown.set(change.bytes, change.position);
  return grown;
}

function tear(change: Change, prng: Prng): Change {
  if (change.kind === "truncate") return change;
  return { ...change, bytes: change.bytes.subarray(0, prng.integer(0, change.bytes.length)) };
}
