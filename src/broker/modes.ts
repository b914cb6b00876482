/** The maintenance modes of this replica. */
export interface Modes {
  /** Pushes are diverted to the disk spool. */
  readonly maintenance: boolean;
  /** Pops are answered empty. */
  readonly popMaintenance: boolean;
}

/** The modes of a replica that takes part in no maintenance. */
export const NORMAL_MODES: Modes = { maintenance: false, popMaintenance: false };
