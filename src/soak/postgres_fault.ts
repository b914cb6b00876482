import type { EmbeddedPostgres } from "../embedded/embedded_postgres.ts";
import { pauseServer } from "../testing/paused_server.ts";

/** Takes PostgreSQL away, and resolves to what brings it back. */
export type PostgresFault = (server: EmbeddedPostgres) => Promise<() => Promise<void>>;

/** It ends at once, and what it has committed stays. */
export const stopPostgres: PostgresFault = async (server) => {
  await server.crash();
  return () => server.restart();
};

/** It hangs. */
export const freezePostgres: PostgresFault = async (server) => {
  const { pid } = server;
  if (pid === undefined) throw new Error("PostgreSQL does not run, so it cannot be frozen");
  const paused = await pauseServer(pid);
  return () => Promise.resolve(paused.resume());
};
