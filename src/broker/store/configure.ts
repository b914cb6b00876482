/**
 * Queues and their options.
 *
 * @module
 */

import type { Parameter, Row } from "./connection.ts";
import type { Pool } from "./pool.ts";
import type { ConfigureRequest, QueueSettings, TenantId } from "./store.ts";

/** The options that have an effect, each with its column, its type and its bounds. */
const OPTIONS = {
  leaseTime: { column: "lease_time", min: 1, initial: 300 },
  retryLimit: { column: "retry_limit", min: 0, initial: 3 },
  retryDelay: { column: "retry_delay", min: 0, initial: 1000 },
  dlqAfterMaxRetries: { column: "dlq_after_max_retries", initial: true },
  dedupWindowSeconds: { column: "dedup_window_seconds", min: 0, initial: 3600 },
  encryptionEnabled: { column: "encryption_enabled", initial: false },
  delayedProcessing: { column: "delayed_processing", min: 0, initial: 0 },
  windowBuffer: { column: "window_buffer", min: 0, initial: 0 },
  retentionSeconds: { column: "retention_seconds", min: 0, initial: 0 },
  completedRetentionSeconds: { column: "completed_retention_seconds", min: 0, initial: 0 },
} as const;

type OptionName = keyof typeof OPTIONS;

const NAMES = Object.keys(OPTIONS) as OptionName[];

/** What an integer column holds. */
const INTEGER_MAX = 2 ** 31 - 1;

/**
 * Makes a queue or changes its options.
 *
 * @throws {TypeError} If an option that has an effect is of the wrong type.
 * @throws {RangeError} If it is out of its bounds.
 */
export async function configure(
  pool: Pool,
  schema: string,
  { tenant, request }: { readonly tenant: TenantId; readonly request: ConfigureRequest },
): Promise<QueueSettings> {
  const { queue, namespace, task, options = {} } = request;
  const parameters: Parameter[] = [
    tenant,
    queue,
    namespace ?? null,
    task ?? null,
    ...NAMES.map((name) => optionParameter(name, options[name])),
    otherOptions(options),
  ];
  const hasNewDelays = options["delayedProcessing"] !== undefined ||
    options["windowBuffer"] !== undefined;
  if (!hasNewDelays) return toSettings((await pool.query(statement(schema), parameters))[0]!);
  return await pool.transaction(async (send) => {
    const [row] = await send(statement(schema), parameters);
    const settings = toSettings(row!);
    await send(`select from ${schema}.retime($1::uuid)`, [settings.queueId]);
    return settings;
  });
}

/** What is null in the parameters is not mentioned, and keeps its value. */
function statement(schema: string): string {
  const columns = NAMES.map((name) => OPTIONS[name].column);
  const values = NAMES.map((name, index) => {
    const type = typeof OPTIONS[name].initial === "boolean" ? "boolean" : "integer";
    return { given: `$${index + 5}::${type}`, initial: String(OPTIONS[name].initial) };
  });
  const other = `$${NAMES.length + 5}::text::jsonb`;
  return `
    insert into ${schema}.queue as queue
      (tenant, name, namespace, task, ${columns.join(", ")}, other_options)
    values ($1::uuid, $2::text, coalesce($3::text, ''), coalesce($4::text, ''),
      ${values.map(({ given, initial }) => `coalesce(${given}, ${initial})`).join(", ")}, ${other})
    on conflict (tenant, name) do update set
      namespace = coalesce($3::text, queue.namespace),
      task = coalesce($4::text, queue.task),
      ${
    columns.map((column, index) => `${column} = coalesce(${values[index]!.given}, queue.${column})`)
      .join(", ")
  },
      other_options = queue.other_options || ${other}
    returning id, namespace, task, ${columns.join(", ")}, other_options::text`;
}

function optionParameter(name: OptionName, value: unknown): Parameter {
  if (value === undefined) return null;
  const option = OPTIONS[name];
  if (typeof value !== typeof option.initial) {
    throw new TypeError(`${name} must be a ${typeof option.initial}, got ${JSON.stringify(value)}`);
  }
  if (typeof value === "boolean") return value;
  if ("min" in option) {
    const number = Number(value);
    if (!Number.isInteger(number) || number < option.min || number > INTEGER_MAX) {
      throw new RangeError(
        `${name} must be a whole number from ${option.min} to ${INTEGER_MAX}, got ${value}`,
      );
    }
  }
  return String(value);
}

/**
 * Names and values as JSON text inside of strings: the jsonb type would refuse some of them
 * (`\u0000`) and change others.
 */
function otherOptions(options: Readonly<Record<string, unknown>>): string {
  const others = Object.entries(options)
    .filter(([name, value]) => !Object.hasOwn(OPTIONS, name) && value !== undefined)
    .map(([name, value]) => [JSON.stringify(name), JSON.stringify(value)]);
  return JSON.stringify(Object.fromEntries(others));
}

function toSettings(row: Row): QueueSettings {
  const others = Object.entries<string>(JSON.parse(row["other_options"] as string))
    .map(([name, value]) => [JSON.parse(name), JSON.parse(value)]);
  return {
    queueId: row["id"] as string,
    namespace: row["namespace"] as string,
    task: row["task"] as string,
    options: Object.fromEntries([
      ...NAMES.map((name) => [name, row[OPTIONS[name].column]]),
      ...others,
    ]),
  };
}
