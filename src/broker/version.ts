/** What this broker calls itself. */
export const ENGINE = "queen-mesh";

/** The version of this package. */
export const VERSION = "0.1.0";
