/**
 * The mesh: best-effort hints between the replicas of a service over one PostgreSQL database.
 *
 * @module
 */

export * from "./src/mesh/runtime.ts";
