/**
 * How PostgreSQL plans the statements of our functions: once for each connection, for any
 * arguments, by index look-ups. The planner would choose by the tables' last statistics, and keep
 * a plan for small tables while they grow; and it would plan anew for arrays of another length.
 */
export const FUNCTION_SETTINGS = `
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set jit = off`;
