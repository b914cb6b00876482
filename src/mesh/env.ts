/** The environment as a plain record, so that no runtime is named here. */
export type Env = Readonly<Record<string, string | undefined>>;

/** A setting that cannot be used. Its message is one line that names it, its value and the rule. */
export class ConfigError extends Error {
  /** The name by which a log shows it. */
  override readonly name = "ConfigError";
}

/** The value of `name`, trimmed; undefined where it is unset or blank. */
export function readText(env: Env, name: string): string | undefined {
  const text = env[name]?.trim();
  return text === "" ? undefined : text;
}

/** An address to bind, without the brackets that an IPv6 literal may stand in; undefined where unset. */
export function readHost(env: Env, name: string): string | undefined {
  return readText(env, name)?.replace(/^\[(.*)\]$/, "$1");
}

/** The bounds and the default of an integer setting. */
export interface IntegerRule {
  /** Taken where the setting is unset or blank. */
  readonly fallback: number;
  /** The least that is allowed. */
  readonly min: number;
  /** The most that is allowed; the longest time a timer can wait by default. */
  readonly max?: number;
}

/** The longest time that a timer of either runtime can wait, in milliseconds. */
export const TIMER_MS_MAX = 2_147_483_647;

/**
 * An integer setting.
 *
 * @throws {ConfigError} Where it is no whole number within its bounds.
 */
export function readInteger(env: Env, name: string, rule: IntegerRule): number {
  const text = readText(env, name);
  if (text === undefined) return rule.fallback;
  const max = rule.max ?? TIMER_MS_MAX;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (!(value >= rule.min && value <= max)) {
    throw new ConfigError(
      `${name} must be a whole number from ${rule.min} to ${max}, not ${JSON.stringify(text)}`,
    );
  }
  return value;
}

/**
 * A switch: `true`, `1`, `yes`, `on` or `false`, `0`, `no`, `off`, in any case.
 *
 * @throws {ConfigError} Where it is anything else.
 */
export function readBoolean(env: Env, name: string, fallback: boolean): boolean {
  const text = readText(env, name);
  if (text === undefined) return fallback;
  switch (text.toLowerCase()) {
    case "true":
    case "1":
    case "yes":
    case "on":
      return true;
    case "false":
    case "0":
    case "no":
    case "off":
      return false;
    default:
      throw new ConfigError(
        `${name} must be true, 1, yes, on, false, 0, no or off, not ${JSON.stringify(text)}`,
      );
  }
}
