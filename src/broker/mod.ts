/**
 * The replica: a broker over PostgreSQL whose parked pops are woken across replicas by the mesh.
 *
 * @module
 */

export { Replica, type ReplicaOptions } from "./replica.ts";
export {
  BODY_BYTES_MAX,
  HTTP_PORT,
  type ReplicaConfig,
  replicaConfigFromEnv,
  type ReplicaEnvConfig,
} from "./config.ts";
export type { HotListSettings } from "./hot_list/config.ts";
export { createCipher } from "./spool/aes_gcm_cipher.ts";
export type { Cipher } from "./spool/cipher.ts";
export { SpoolInUseError } from "./spool/errors.ts";
export type { SpoolEntry, SpoolFile, SpoolFileSystem } from "./spool/file_system.ts";
export type { AcquireSpoolLock, SpoolLock } from "./spool/lock.ts";
export { nodeFileSystem } from "./spool/node_file_system.ts";
export type { SpoolConfig } from "./spool/spool_config.ts";
export type { SpoolSettings } from "./spooler.ts";
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
// Neither is bound to a runtime: both work on Deno and on Node.
export { listenHttp } from "../runtime/http.ts";
export { socketLock, type SocketLockOptions } from "../runtime/socket_lock.ts";
