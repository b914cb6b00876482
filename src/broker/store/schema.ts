/**
 * The tables, and the steps that make them.
 *
 * Locks are taken in one order everywhere: queues by name, then partitions by id, then cursors by
 * (partition, group). Whoever goes against it does not wait (SKIP LOCKED).
 *
 * - A push holds the partition's row from numbering to the commit, so that number order is commit
 *   order.
 * - A cursor is ready (`ready_at`) while something waits for its group or a lease is to run out. A
 *   push makes it so; it touches no cursor that already is, so that pushes and pops of a busy
 *   partition do not wait for each other. A pop or an ack that finds nothing left makes it idle,
 *   but only while it holds the partition's row, under which no push can be halfway. Where a push
 *   is, the cursor stays ready, and the next pop finds out.
 *
 * @module
 */

import { ackFunctions } from "./ack.ts";
import { candidatesFunctions } from "./candidates.ts";
import { deleteFunctions } from "./delete_queue.ts";
import { groupFunctions } from "./groups.ts";
import { leaseFunctions } from "./lease.ts";
import { popFunctions } from "./pop.ts";
import { pushFunctions } from "./push.ts";
import { readyFunctions } from "./ready.ts";
import { retentionFunctions } from "./retention.ts";
import { spooledFunctions } from "./spooled.ts";
import { transactionFunctions } from "./transaction.ts";

/** One step: what it runs in the schema of that name. Steps are never changed, only added. */
export type Migration = (schema: string) => readonly string[];

/** All steps in order; the version of a schema is how many of them it has seen. */
export const MIGRATIONS: readonly Migration[] = [
  (schema) => [
    tables(schema),
    ...pushFunctions(schema),
    ...spooledFunctions(schema),
    ...readyFunctions(schema),
    ...popFunctions(schema),
    ...leaseFunctions(schema),
    ...groupFunctions(schema),
    ...ackFunctions(schema),
    ...transactionFunctions(schema),
    ...deleteFunctions(schema),
    ...retentionFunctions(schema),
    ...candidatesFunctions(schema),
  ],
];

const tables = (s: string): string => `
create table ${s}.queue (
  id uuid primary key default gen_random_uuid(),
  tenant uuid, -- null: the queue was deleted, and what is left of it is on its way out
  name text collate "C" not null,
  namespace text collate "C" not null default '',
  task text collate "C" not null default '',
  lease_time integer not null, -- seconds
  retry_limit integer not null default 3,
  retry_delay integer not null default 1000, -- milliseconds
  dlq_after_max_retries boolean not null default true,
  dedup_window_seconds integer not null default 3600,
  encryption_enabled boolean not null default false,
  delayed_processing integer not null default 0, -- seconds
  window_buffer integer not null default 0, -- seconds
  retention_seconds integer not null default 0,
  completed_retention_seconds integer not null default 0,
  queue_mode_used boolean not null default false, -- as a sweep has seen it
  -- Options without an effect: the name as JSON text to the value as JSON text.
  other_options jsonb not null default '{}',
  created_at timestamptz not null default now(),
  unique (tenant, name)
);
create index queue_deleted on ${s}.queue (id) where tenant is null;
create index queue_discovery on ${s}.queue (tenant, namespace, task);

create table ${s}.partition (
  id uuid primary key default gen_random_uuid(),
  queue_id uuid not null references ${s}.queue on delete cascade,
  name text collate "C" not null,
  last_number bigint not null default 0,
  last_at timestamptz not null default '-infinity', -- of the last message
  created_at timestamptz not null default now(),
  unique (queue_id, name)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- No foreign key: messages are many, and every insert would look its partition up.
create table ${s}.message (
  partition_id uuid not null,
  number bigint not null,
  id uuid not null,
  transaction_id text collate "C" not null,
  payload text not null, -- the producer's JSON text, or what it was encrypted to
  encrypted boolean not null,
  created_at timestamptz not null, -- never goes back within a partition
  accepted_at timestamptz, -- where it waited in a spool: when it was accepted there
  primary key (partition_id, number)
);
create index message_transaction on ${s}.message (partition_id, transaction_id, number);

-- The groups beside queue mode. A partition made later gets a cursor for each of them.
create table ${s}.consumer_group (
  queue_id uuid not null references ${s}.queue on delete cascade,
  name text collate "C" not null,
  start_at timestamptz not null, -- messages up to then are not for it; -infinity: all are
  -- The partitions that were there before it have their cursors up to this name; null: all of them.
  made_to text collate "C" default '',
  primary key (queue_id, name)
);

create table ${s}.cursor (
  partition_id uuid not null references ${s}.partition on delete cascade,
  consumer_group text collate "C" not null,
  queue_id uuid not null,
  committed bigint not null default 0, -- the last number that the group is done with
  settled bigint[] not null default '{}', -- numbers above it that the group is done with
  released_to bigint not null default 0, -- up to this number nothing waits for its window any more
  ready_at timestamptz, -- from when on a pop looks here; null: there is nothing
  lease_id uuid,
  lease_end bigint not null default 0, -- the last number of the leased batch
  lease_expires_at timestamptz,
  tries integer not null default 0, -- charged to the present batch
  primary key (partition_id, consumer_group)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
-- What a pop looks through: its size follows the busy partitions, not all.
create index cursor_ready on ${s}.cursor (queue_id, consumer_group, ready_at)
  where ready_at is not null;
create unique index cursor_lease on ${s}.cursor (lease_id) where lease_id is not null;

-- No foreign key: to acknowledge must not wait for a partition's row while it holds a cursor.
create table ${s}.dead_letter (
  partition_id uuid not null,
  consumer_group text collate "C" not null,
  number bigint not null,
  queue_id uuid not null,
  message_id uuid not null,
  transaction_id text collate "C" not null,
  payload text not null,
  encrypted boolean not null,
  error text,
  retry_count integer not null,
  created_at timestamptz not null,
  failed_at timestamptz not null,
  primary key (partition_id, consumer_group, number)
);
create index dead_letter_listing on ${s}.dead_letter (queue_id, failed_at);

-- What a sweep removed while it still made others duplicates: the last of each transactionId.
create table ${s}.swept (
  partition_id uuid not null,
  transaction_id text collate "C" not null,
  id uuid not null,
  accepted_at timestamptz not null, -- the time that counts for duplicates
  primary key (partition_id, transaction_id)
);
create index swept_accepted on ${s}.swept (partition_id, accepted_at);

-- Up to which number all groups were done with a partition, as a sweep has seen it.
create table ${s}.completion (
  partition_id uuid not null,
  number bigint not null,
  seen_at timestamptz not null,
  primary key (partition_id, number)
);

create table ${s}.flag (
  name text primary key,
  enabled boolean not null,
  version bigint not null
);
insert into ${s}.flag values ('maintenance', false, 0), ('pop_maintenance', false, 0);

-- How far each spool has been drained.
create table ${s}.spool_position (
  spool_id text primary key,
  position bigint not null
);
`;
