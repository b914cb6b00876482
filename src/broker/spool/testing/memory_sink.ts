import type { Clock } from "../../../mesh/runtime.ts";
import type { Prng } from "../../../simulation/prng.ts";
import { RefusedRecordsError } from "../errors.ts";
import type { SinkOutcome, SpoolBatch, SpoolSink } from "../sink.ts";
import type { SpoolRecord } from "../spool_record.ts";

/** What becomes of an attempt to store something. */
export type Attempt =
  /** It is stored, and the caller is told. */
  | "done"
  /** Nothing is stored, and the caller is told. */
  | "fails"
  /** It is stored, and the caller is told that it failed. */
  | "unknown"
  /** The caller is told that it failed, and it is tried later all the same. */
  | "late";

/** How long a late attempt is on its way at most, in milliseconds. */
const LATE_MS_MAX = 8000;

/** A PostgreSQL in memory: it outlasts the crashes of the replicas. */
export class MemorySink implements SpoolSink {
  /** What is stored, in the order of the commits. */
  readonly stored: SpoolRecord[] = [];
  /** How many records each attempt carried. */
  readonly attempts: number[] = [];
  /** Decides what becomes of an attempt. */
  attempt: () => Attempt = () => "done";
  /** Which records are at fault. */
  isRefused: (record: SpoolRecord) => boolean = () => false;
  /** An attempt waits for this before it begins. */
  gate: () => Promise<void> = () => Promise.resolve();
  readonly #positions = new Map<string, number>();
  /** Messages of which there was an attempt past the spool: their ids are looked up. */
  readonly #pushed = new Set<string>();
  readonly #ids = new Set<string>();
  readonly #clock: Clock;
  readonly #prng: Prng;

  /** An empty one. */
  constructor({ clock, prng }: { readonly clock: Clock; readonly prng: Prng }) {
    this.#clock = clock;
    this.#prng = prng;
  }

  async position(spoolId: string): Promise<number> {
    await this.gate();
    if (this.attempt() !== "done") throw new Error("no position");
    return this.#positions.get(spoolId) ?? 0;
  }

  async store(batch: SpoolBatch): Promise<SinkOutcome> {
    this.attempts.push(batch.records.length);
    await this.gate();
    return await this.#try(() => this.#commit(batch));
  }

  /** A push that goes past the spool. */
  async push(record: SpoolRecord): Promise<void> {
    this.#pushed.add(record.messageId);
    await this.gate();
    await this.#try(() => this.#storeOnce(record));
  }

  /** Forgets everything after the first `count` records, as a restored backup does. */
  restoreBackup(positions: ReadonlyMap<string, number>, count: number): void {
    for (const record of this.stored.splice(count)) this.#ids.delete(record.messageId);
    this.#positions.clear();
    for (const [id, position] of positions) this.#positions.set(id, position);
  }

  /** How far each log is stored. */
  get positions(): ReadonlyMap<string, number> {
    return new Map(this.#positions);
  }

  async #try<T>(commit: () => T): Promise<T> {
    const attempt = this.attempt();
    if (attempt === "done") return commit();
    if (attempt === "unknown") commit();
    if (attempt === "late") {
      this.#clock.setTimer(this.#prng.integer(0, LATE_MS_MAX), () => {
        try {
          commit();
        } catch (error) {
          if (!(error instanceof RefusedRecordsError)) throw error;
        }
      });
    }
    await Promise.resolve();
    throw new Error(`PostgreSQL is away (${attempt})`);
  }

  #commit({ spoolId, after, position, records }: SpoolBatch): SinkOutcome {
    const known = this.#positions.get(spoolId) ?? 0;
    if (known !== after) return { position: known };
    if (records.some((record) => this.isRefused(record))) {
      throw new RefusedRecordsError("22P02: a record is at fault");
    }
    for (const record of records) this.#storeOnce(record);
    this.#positions.set(spoolId, position);
    return { position };
  }

  #storeOnce(record: SpoolRecord): void {
    const { messageId } = record;
    // PostgreSQL knows a repeated attempt by its id. Here only for pushes: what the spool stores twice
    // shall be seen.
    if (this.#ids.has(messageId) && this.#pushed.has(messageId)) return;
    this.#ids.add(messageId);
    this.stored.push(record);
  }
}
