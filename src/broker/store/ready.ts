/**
 * When a cursor can be taken from: what pops, acks and pushes have to agree on.
 *
 * @module
 */

import { FUNCTION_SETTINGS } from "./function_settings.ts";

/** Once so many messages wait in a partition, nothing is gained by letting them wait for more. */
export const WINDOW_MESSAGES = 100;

/**
 * Whether something can be taken from a cursor now: its first message has matured, and is out of its
 * window. One look into an index, as a rule.
 *
 * The names around it: `v_start`, from when on messages are for the group; `v_mature` and `v_window`,
 * up to when they must have been stored. `infinity` is no bound.
 */
export const takeable = (s: string): string =>
  `(
    select message.created_at <= v_mature
        and (message.created_at <= v_window or message.number <= cursor.released_to
          or ${WINDOW_MESSAGES} <= (
            select last_number - message.number + 1 - cardinality(cursor.settled)
              from ${s}.partition where partition.id = cursor.partition_id))
      from ${s}.message
      where message.partition_id = cursor.partition_id and message.number > cursor.committed
        and message.number <> all (cursor.settled) and message.created_at > v_start
      order by message.number limit 1
  ) is true`;

/** Whether something waits for a cursor's group, now or later. */
const hasMessage = (s: string): string =>
  `(
    select true from ${s}.message
      where message.partition_id = cursor.partition_id and message.number > cursor.committed
        and message.number <> all (cursor.settled) and message.created_at > v_start
      limit 1
  ) is true`;

/** What the functions of this folder share. */
export const readyFunctions = (s: string): readonly string[] => [
  `
-- What a group that is done up to p_committed has left: 'some', 'none', or 'unknown' while a push
-- is under way. The caller holds the cursor; after 'none' no push can be numbered before it commits.
create function ${s}.backlog(p_partition_id uuid, p_committed bigint)
returns text language plpgsql as $$
declare
  v_last bigint;
begin
  select last_number into v_last from ${s}.partition where id = p_partition_id;
  if v_last > p_committed then
    return 'some';
  end if;
  select last_number into v_last from ${s}.partition where id = p_partition_id
    for share skip locked;
  return case when v_last is null then 'unknown' when v_last > p_committed then 'some' else 'none' end;
end $$`,
  `
-- From when on a cursor that holds no lease can be taken from, given what waits for it. Where
-- nothing is seen to wait a push may be under way, so that a pop has to look.
create function ${s}.next_ready(
  p_queue ${s}.queue, p_partition_id uuid, p_committed bigint, p_settled bigint[],
  p_released_to bigint, p_now timestamptz
)
returns timestamptz language plpgsql as $$
declare
  v_number bigint;
  v_created_at timestamptz;
  v_last bigint;
begin
  if p_queue.delayed_processing = 0 and p_queue.window_buffer = 0 then
    return p_now;
  end if;
  select number, created_at into v_number, v_created_at from ${s}.message
    where partition_id = p_partition_id and number > p_committed and number <> all (p_settled)
    order by number limit 1;
  if not found then
    return p_now;
  end if;
  select last_number into v_last from ${s}.partition where id = p_partition_id;
  return greatest(
    p_now,
    v_created_at + p_queue.delayed_processing * interval '1 second',
    case when v_number > p_released_to
        and v_last - v_number + 1 - cardinality(p_settled) < ${WINDOW_MESSAGES}
      then v_created_at + p_queue.window_buffer * interval '1 second' end
  );
end $$`,
  `
-- Sets anew when what waits can be taken, after the queue's delays were changed.
create function ${s}.retime(p_queue_id uuid)
returns void language plpgsql ${FUNCTION_SETTINGS} as $$
declare
  v_queue ${s}.queue;
  v_now timestamptz;
begin
  select * into v_queue from ${s}.queue where id = p_queue_id;
  perform from ${s}.cursor where queue_id = p_queue_id and ready_at is not null
    order by partition_id, consumer_group for no key update;
  v_now := clock_timestamp();
  -- What was delivered before waits for its lease or its retryDelay alone.
  update ${s}.cursor
    set ready_at = case when mature_at > v_now then mature_at else least(cursor.ready_at, v_now) end
    from (
      select partition_id, consumer_group, ${s}.next_ready(v_queue, partition_id, committed, settled,
          released_to, v_now) as mature_at
        from ${s}.cursor
        where queue_id = p_queue_id and ready_at is not null and lease_id is null
          and committed >= released_to
    ) waiting
    where cursor.partition_id = waiting.partition_id
      and cursor.consumer_group = waiting.consumer_group;
end $$`,
  `
-- In how many milliseconds a cursor can be taken from, once it is ready at p_ready_at; null where
-- p_backlog is 'none'. A push that is under way commits what matures by the queue's delays.
create function ${s}.available_in_ms(
  p_queue ${s}.queue, p_backlog text, p_ready_at timestamptz, p_now timestamptz
)
returns integer language plpgsql as $$
begin
  return case p_backlog
    when 'some' then least(
      greatest(ceil(extract(epoch from p_ready_at - p_now) * 1000), 0), 2147483647)
    when 'unknown' then least(
      greatest(ceil(extract(epoch from p_ready_at - p_now) * 1000),
        1000::bigint * greatest(p_queue.delayed_processing, p_queue.window_buffer)), 2147483647)
  end;
end $$`,
  `
-- Puts right the oldest cursors that look ready and have nothing to take: a push was rolled back
-- after an ack had met it half-way, or what waits has not matured. It locks a cursor only once it
-- knows that there is nothing to take from it and that no push is under way, so that no pop is kept
-- from a message.
create function ${s}.clear_ready(
  v_queue ${s}.queue, p_group text, p_now timestamptz,
  v_start timestamptz, v_mature timestamptz, v_window timestamptz
)
returns void language plpgsql as $$
declare
  v_partition_id uuid;
  v_last bigint;
begin
  for v_partition_id in
    select partition_id from ${s}.cursor
      where queue_id = v_queue.id and consumer_group = p_group and ready_at <= p_now
        and not (${takeable(s)})
      order by ready_at limit 10
  loop
    select last_number into v_last from ${s}.partition where id = v_partition_id
      for share skip locked;
    continue when not found;
    -- It may hold cursors that other pops of the statement have claimed: it must not wait.
    perform from ${s}.cursor
      where partition_id = v_partition_id and consumer_group = p_group and ready_at <= p_now
        and not (${takeable(s)})
      for no key update skip locked;
    continue when not found;
    update ${s}.cursor
      set ready_at = null, committed = v_last, settled = '{}',
        lease_id = null, lease_end = v_last, lease_expires_at = null
      where partition_id = v_partition_id and consumer_group = p_group and ready_at <= p_now
        and not (${hasMessage(s)});
    continue when found or (v_queue.delayed_processing = 0 and v_queue.window_buffer = 0);
    update ${s}.cursor
      set ready_at = ${s}.next_ready(v_queue, partition_id, committed, settled, released_to, p_now)
      where partition_id = v_partition_id and consumer_group = p_group and ready_at <= p_now
        and not (${takeable(s)});
  end loop;
end $$`,
];
