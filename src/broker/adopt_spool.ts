import type { Logger } from "../mesh/runtime.ts";
import type { Spool } from "./spool/spool.ts";

/** What an adoption is made of. */
export interface AdoptionOptions {
  /** Where the spool lies. */
  readonly directory: string;
  /** Opens it; rejects where another process works on it. */
  readonly open: () => Promise<Pick<Spool, "drained" | "close" | "stats">>;
  /** Where it is reported. */
  readonly logger: Logger;
}

/** A spool that is being drained. */
export interface Adoption {
  /** Drains no further. */
  close(): void;
  /** Resolves once it is closed, drained or not. Never rejects. */
  readonly done: Promise<void>;
}

/** Drains the spool of another replica and closes it. */
export function adoptSpool({ directory, open, logger }: AdoptionOptions): Adoption {
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  return { close: stop, done: adopt() };

  async function adopt(): Promise<void> {
    try {
      const spool = await open();
      logger.info("The spool of another replica is being drained", { directory });
      await Promise.race([spool.drained(), stopped]);
      const { pendingCount } = spool.stats();
      await spool.close();
      logger.info("The spool of another replica is closed", { directory, pendingCount });
    } catch (error) {
      logger.error("The spool of another replica could not be drained", { directory, error });
    }
  }
}
