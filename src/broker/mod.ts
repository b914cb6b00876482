/**
 * The replica: a broker over PostgreSQL whose parked pops are woken across replicas by the mesh.
 *
 * @module
 */

export { Replica, type ReplicaOptions } from "./replica.ts";
export { BODY_BYTES_MAX, HTTP_PORT, type ReplicaConfig, replicaConfigFromEnv } from "./config.ts";
export { POP_WAIT_DEFAULTS, popWaitFromEnv, type PopWaitSettings } from "./backoff.ts";
export type {
  Delivery,
  HttpHandler,
  HttpListener,
  HttpListenOptions,
  ListenHttp,
} from "./http_seam.ts";
export * from "./store/store.ts";
export { type DatabaseConfig, databaseFromEnv, type Environment } from "./store/database_config.ts";
export { PostgresStore, type PostgresStoreOptions } from "./store/postgres_store.ts";
