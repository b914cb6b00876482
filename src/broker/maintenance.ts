import { Backoff } from "../mesh/backoff.ts";
import type { Clock, Logger, Random, Timer } from "../mesh/runtime.ts";
import type { Message, OutgoingMessage } from "../protocol/messages.ts";
import { type Modes, NORMAL_MODES } from "./modes.ts";
import {
  type FlagName,
  type FlagValue,
  type FlagValues,
  StoreUnavailableError,
} from "./store/store.ts";

export type { FlagName, FlagValue, FlagValues } from "./store/store.ts";

/** A flip that a peer tells. */
export type FlagMessage = Extract<Message, { readonly enabled: boolean }>;

/** What {@linkcode MaintenanceFlags} are made of. */
export interface MaintenanceFlagsOptions {
  /** Time. */
  readonly clock: Clock;
  /** For jitter. */
  readonly random: Random;
  /** Where failures and changes are reported. */
  readonly logger: Logger;
  /**
   * Reads all flags from PostgreSQL. Rejects with {@linkcode StoreUnavailableError} where that cannot
   * be reached; must settle, also where it does not answer.
   */
  readonly read: () => Promise<FlagValues>;
  /** Writes a flag to PostgreSQL and raises its version. Rejects where that does not take it. */
  readonly write: (name: FlagName, enabled: boolean) => Promise<FlagValue>;
  /** Tells every peer; never waits. */
  readonly broadcast: (message: OutgoingMessage) => void;
  /** Told that a mode is on or off: at every change, and when PostgreSQL first says which it is. */
  readonly onChange: (name: FlagName, enabled: boolean) => void;
}

/** One flag as this replica holds it. */
interface HeldFlag {
  /** The newest value that PostgreSQL named. */
  value: FlagValue;
  /** What a peer said, where PostgreSQL could not be asked; until that answers. */
  provisional: boolean | undefined;
}

/** Who waits for a read. */
interface Refresh {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const FRAMES = {
  maintenance: "maintenance_mode",
  pop_maintenance: "pop_maintenance_mode",
} as const satisfies Record<FlagName, FlagMessage["type"]>;

const APPLIED = "A maintenance flag is applied as PostgreSQL has it";
const PROVISIONAL =
  "A maintenance flag is applied as a peer has it, until PostgreSQL can be asked about it";

/** Before PostgreSQL has said anything: older than all that it can say. */
const UNKNOWN: FlagValue = { enabled: false, version: -1 };

/**
 * The maintenance flags (MNT-1). PostgreSQL is the arbiter: of what it says the newest is applied, and
 * what a peer says is only a reason to ask it. So a forged frame changes nothing while PostgreSQL
 * answers, a flood of them costs one read at a time, and opposite flips end the same everywhere.
 */
export class MaintenanceFlags {
  readonly #options: MaintenanceFlagsOptions;
  readonly #backoff: Backoff;
  readonly #held: Readonly<Record<FlagName, HeldFlag>> = {
    maintenance: { value: UNKNOWN, provisional: undefined },
    pop_maintenance: { value: UNKNOWN, provisional: undefined },
  };
  #modes: Modes = NORMAL_MODES;
  /** What peers said, and who waits, since the read under way began: the next read is for them. */
  #hints = new Map<FlagName, boolean>();
  #refreshes: Refresh[] = [];
  /** What peers had said when the read under way began. */
  #askedFor = new Map<FlagName, boolean>();
  #reading: Promise<void> | undefined;
  #isReadWanted = false;
  /** A peer's word has not been checked, since PostgreSQL did not answer. */
  #isUnchecked = false;
  #retry: Timer | undefined;
  #isFailing = false;
  #isClosed = false;

  /** Asks nothing yet; the modes are off. */
  constructor(options: MaintenanceFlagsOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.random);
  }

  /** The modes that this replica is in. */
  get modes(): Modes {
    return this.#modes;
  }

  /** Whether PostgreSQL has ever said what a flag is. Until then its mode is off or a peer's word. */
  isKnown(name: FlagName): boolean {
    return this.#held[name].value.version > UNKNOWN.version;
  }

  /**
   * Flips a flag for all replicas: in PostgreSQL, then here, then at the peers. Rejects where
   * PostgreSQL does not take it; then nothing is applied and nobody is told.
   */
  async set(name: FlagName, enabled: boolean): Promise<void> {
    const value = await this.#options.write(name, enabled);
    if (this.#isClosed) return;
    this.#apply(name, value);
    this.postgresAnswered();
    this.#options.broadcast({ type: FRAMES[name], enabled: value.enabled });
  }

  /** A peer says that a flag was flipped: PostgreSQL is asked whether that is so. */
  hear({ type, enabled }: FlagMessage): void {
    if (this.#isClosed) return;
    this.#hints.set(type === FRAMES.maintenance ? "maintenance" : "pop_maintenance", enabled);
    this.#read();
  }

  /**
   * Reads all flags and applies them. Rejects where that was not possible; then they stay as they are
   * (REC-1).
   */
  refresh(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#refreshes.push({ resolve, reject });
      this.#read();
    });
  }

  /** PostgreSQL has answered something: if it is owed a question, it is asked now. Costs next to nothing. */
  postgresAnswered(): void {
    if (this.#retry !== undefined) this.#read();
  }

  /** Asks and applies nothing more; resolves once no read is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    await this.#reading;
  }

  /** Sees to it that a read begins from here on, after the one under way if there is one. */
  #read(): void {
    this.#cancelRetry();
    this.#isReadWanted = true;
    this.#reading ??= Promise.resolve().then(() => this.#readWhileWanted());
  }

  async #readWhileWanted(): Promise<void> {
    while (this.#isReadWanted) {
      this.#isReadWanted = false;
      await this.#readOnce();
    }
    this.#reading = undefined;
    if (!this.#isUnchecked || this.#isClosed) return;
    this.#retry = this.#options.clock.setTimer(this.#backoff.next(), () => this.#read());
  }

  async #readOnce(): Promise<void> {
    const refreshes = this.#refreshes;
    this.#refreshes = [];
    this.#askedFor = this.#hints;
    this.#hints = new Map();
    try {
      if (this.#isClosed) throw new Error("the replica is closing");
      const values = await this.#options.read();
      this.#takeAnswer(values);
      for (const { resolve } of refreshes) resolve();
    } catch (error) {
      this.#takeFailure(error);
      for (const { reject } of refreshes) reject(error);
    }
  }

  #takeAnswer({ maintenance, pop_maintenance }: FlagValues): void {
    this.#backoff.reset();
    this.#isFailing = false;
    this.#isUnchecked = false;
    this.#apply("maintenance", maintenance);
    this.#apply("pop_maintenance", pop_maintenance);
  }

  #takeFailure(error: unknown): void {
    if (this.#isClosed) return;
    if (!this.#isFailing) {
      this.#isFailing = true;
      this.#options.logger.warn("The maintenance flags could not be read", { error });
    }
    if (this.#askedFor.size > 0) this.#isUnchecked = true;
    // Only silence makes a peer's word count. Another error is an answer, though not to the question.
    if (!(error instanceof StoreUnavailableError)) return;
    for (const [name, enabled] of this.#askedFor) this.#apply(name, { enabled });
  }

  /** The one place in which a flag changes. Without a version it is a peer's word. */
  #apply(
    name: FlagName,
    { enabled, version }: { readonly enabled: boolean; readonly version?: number },
  ): void {
    if (this.#isClosed) return;
    const { logger, onChange } = this.#options;
    const held = this.#held[name];
    const wasKnown = this.isKnown(name);
    const wasOn = isOn(held);
    if (version === undefined) {
      // Peers can flip back and forth while PostgreSQL is away: that is reported once.
      if (held.provisional === undefined) logger.warn(PROVISIONAL, { flag: name, enabled });
      held.provisional = enabled;
    } else {
      // Whatever its version, it is an answer: what a peer had said before it counts no more.
      held.provisional = undefined;
      this.#askedFor.delete(name);
      if (version > held.value.version) held.value = { enabled, version };
    }
    if (isOn(held) === wasOn && this.isKnown(name) === wasKnown) return;
    const { maintenance, pop_maintenance } = this.#held;
    this.#modes = { maintenance: isOn(maintenance), popMaintenance: isOn(pop_maintenance) };
    if (version !== undefined) logger.info(APPLIED, { flag: name, enabled: isOn(held), version });
    try {
      onChange(name, isOn(held));
    } catch (error) {
      logger.error("A change of a maintenance flag was not acted upon", { flag: name, error });
    }
  }

  #cancelRetry(): void {
    this.#retry?.cancel();
    this.#retry = undefined;
  }
}

function isOn({ value, provisional }: HeldFlag): boolean {
  return provisional ?? value.enabled;
}
