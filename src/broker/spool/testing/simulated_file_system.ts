/**
 * A file system that crashes, fills up and fails as a seed says.
 *
 * @module
 */

import { basename, dirname } from "node:path";
import type { Prng } from "../../../simulation/prng.ts";
import type { SpoolEntry, SpoolFile, SpoolFileSystem } from "../file_system.ts";
import { DirectoryNode, FileNode } from "./simulated_disk.ts";

/** What is asked of the file system. */
export type Operation =
  | "makeDirectory"
  | "list"
  | "create"
  | "open"
  | "remove"
  | "syncDirectory"
  | "read"
  | "write"
  | "truncate"
  | "sync"
  | "close";

/** Decides whether an operation fails, and with which code. */
export type Fault = (operation: Operation, path: string) => string | undefined;

/** What a {@linkcode SimulatedFileSystem} is made of. */
export interface SimulationOptions {
  /** What the disk holds. */
  readonly root?: DirectoryNode;
  /** Decides what is left after a crash, and how writes are cut. */
  readonly prng: Prng;
  /** Reads and writes take fewer bytes than they could now and then. */
  readonly isChoppy?: boolean;
}

/** One run of a machine, from its start to its crash. */
export class SimulatedFileSystem implements SpoolFileSystem {
  readonly #root: DirectoryNode;
  readonly #prng: Prng;
  readonly #isChoppy: boolean;
  /** Decides what fails; nothing does by default. */
  fault: Fault = () => undefined;
  /** An operation waits for this before it begins. */
  gate: (operation: Operation) => Promise<void> = () => Promise.resolve();
  /** How many bytes all files may have together. */
  capacityBytes = Infinity;
  /** The machine crashes in the middle of this operation, counted from 1. */
  crashAt = Infinity;
  /** How many operations there were. */
  operationCount = 0;
  /** How many files are open. */
  openCount = 0;
  /** Resolves at the crash. */
  readonly crashed: Promise<void>;
  #resolveCrashed: () => void = () => {};
  #isCrashed = false;

  /** Starts the machine. */
  constructor({ root = new DirectoryNode(), prng, isChoppy = false }: SimulationOptions) {
    this.#root = root;
    this.#prng = prng;
    this.#isChoppy = isChoppy;
    this.crashed = new Promise((resolve) => this.#resolveCrashed = resolve);
  }

  /** Whether the machine has crashed. */
  get isCrashed(): boolean {
    return this.#isCrashed;
  }

  /** The power goes. No call that is under way, or comes later, ever settles. */
  crash(): void {
    if (this.#isCrashed) return;
    this.#isCrashed = true;
    this.#root.loseUnsynced(this.#prng);
    this.#resolveCrashed();
  }

  /** The same disk after the crash, in a new run. */
  restart(): SimulatedFileSystem {
    this.crash();
    return new SimulatedFileSystem({
      root: this.#root,
      prng: this.#prng,
      isChoppy: this.#isChoppy,
    });
  }

  /** The content of a file, to look at and to damage. */
  contentOf(path: string): Uint8Array {
    return this.#file(path).content;
  }

  /** Cuts a file that is on the disk, as damage does. */
  cut(path: string, length: number): void {
    const file = this.#file(path);
    file.change({ kind: "truncate", length });
    file.sync(file.changeCount);
  }

  /** The files in a directory, by name. */
  namesIn(path: string): string[] {
    return [...this.#directory(path).entries.keys()].sort();
  }

  makeDirectory(path: string): Promise<void> {
    return this.#call("makeDirectory", path, () => this.#add(path, new DirectoryNode()));
  }

  list(path: string): Promise<SpoolEntry[]> {
    return this.#call(
      "list",
      path,
      () =>
        [...this.#directory(path).entries].map(([name, node]) => ({
          name,
          isDirectory: node instanceof DirectoryNode,
          bytes: node instanceof FileNode ? node.content.length : 0,
        })),
    );
  }

  create(path: string): Promise<SpoolFile> {
    return this.#call("create", path, () => {
      const node = new FileNode();
      this.#add(path, node);
      return this.#opened(path, node);
    });
  }

  open(path: string): Promise<SpoolFile> {
    return this.#call("open", path, () => this.#opened(path, this.#file(path)));
  }

  remove(path: string): Promise<void> {
    return this.#call("remove", path, () => {
      this.#file(path);
      this.#directory(dirname(path)).entries.delete(basename(path));
    });
  }

  syncDirectory(path: string): Promise<void> {
    return this.#call("syncDirectory", path, () => this.#directory(path).sync());
  }

  #opened(path: string, node: FileNode): SpoolFile {
    this.openCount++;
    return {
      read: (buffer, position) =>
        this.#call("read", path, () => {
          const bytes = node.content.subarray(position, position + buffer.length);
          const taken = bytes.subarray(0, this.#chop(bytes.length));
          buffer.set(taken);
          return taken.length;
        }),
      write: (bytes, position) =>
        this.#call("write", path, () => {
          const room = this.capacityBytes - this.#usedBytes();
          const count = Math.min(this.#chop(bytes.length), Math.max(room, 0));
          if (count === 0) throw systemError("ENOSPC", "write", path);
          node.change({ kind: "write", position, bytes: bytes.slice(0, count) });
          return count;
        }),
      truncate: (length) =>
        this.#call("truncate", path, () => node.change({ kind: "truncate", length })),
      sync: () => {
        const count = node.changeCount;
        return this.#call("sync", path, () => node.sync(count), () => node.giveUp(this.#prng));
      },
      close: () =>
        this.#call("close", path, () => {
          this.openCount--;
        }),
    };
  }

  /** Does what is asked, at some moment, unless it fails or the machine crashes. */
  async #call<T>(
    operation: Operation,
    path: string,
    effect: () => T,
    onFault: () => void = () => {},
  ): Promise<T> {
    await this.gate(operation);
    for (let turns = this.#prng.integer(1, 4); turns > 0; turns--) await Promise.resolve();
    if (++this.operationCount === this.crashAt && !this.#isCrashed) {
      // It may have happened, though nobody is told.
      if (this.#prng.chance(0.5)) effect();
      this.crash();
    }
    if (this.#isCrashed) return await new Promise<never>(() => {});
    const code = this.fault(operation, path);
    if (code !== undefined) {
      onFault();
      throw systemError(code, operation, path);
    }
    return effect();
  }

  #chop(length: number): number {
    return this.#isChoppy && length > 1 && this.#prng.chance(0.3)
      ? this.#prng.integer(1, length)
      : length;
  }

  #usedBytes(directory = this.#root): number {
    let sum = 0;
    for (const node of directory.entries.values()) {
      sum += node instanceof FileNode ? node.content.length : this.#usedBytes(node);
    }
    return sum;
  }

  #add(path: string, node: FileNode | DirectoryNode): void {
    const { entries } = this.#directory(dirname(path));
    if (entries.has(basename(path))) throw systemError("EEXIST", "make", path);
    entries.set(basename(path), node);
  }

  #file(path: string): FileNode {
    const node = this.#directory(dirname(path)).entries.get(basename(path));
    if (node instanceof FileNode) return node;
    throw systemError("ENOENT", "open", path);
  }

  #directory(path: string): DirectoryNode {
    let node: FileNode | DirectoryNode | undefined = this.#root;
    for (const name of path.split("/").filter((name) => name !== "")) {
      node = node instanceof DirectoryNode ? node.entries.get(name) : undefined;
    }
    if (node instanceof DirectoryNode) return node;
    throw systemError("ENOENT", "list", path);
  }
}

function systemError(code: string, operation: string, path: string): Error {
  return Object.assign(new Error(`${code}: simulated, ${operation} ${path}`), { code });
}
