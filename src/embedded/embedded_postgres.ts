/**
 * A PostgreSQL of our own, for the demo and the tests: real binaries from npm, data in a temporary
 * directory, gone when it is stopped.
 *
 * @module
 */

import { randomBytes, randomInt } from "node:crypto";
import { chown, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Account, postgresAccount } from "./account.ts";
import { copyBinaries } from "./binaries.ts";
import { type Guard, startGuard } from "./guard.ts";
import { runToEnd, type ServerProcess, ServerStartError, startServer } from "./server_process.ts";

/** How to start an embedded PostgreSQL. */
export interface EmbeddedPostgresOptions {
  /** Server settings over those chosen here, as `postgresql.conf` names them. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where to make its directory, open to the account that it runs under; the system's default. */
  readonly parent?: string;
}

/** A running embedded PostgreSQL. */
export interface EmbeddedPostgres {
  /** Where it takes connections: `postgres://user:password@127.0.0.1:port/database`. */
  readonly url: string;
  /** The number of its main process; undefined while it does not run. */
  readonly pid: number | undefined;
  /** Stops it and removes all its files. Calling it twice is harmless. */
  stop(): Promise<void>;
  /** Makes it stop at once without cleaning up, as a crash would; its data stay. */
  crash(): Promise<void>;
  /** Starts it again after a {@linkcode EmbeddedPostgres.crash | crash}, under the same URL. */
  restart(): Promise<void>;
}

/** How long a server gets to shut down before it is ended at once. */
const SHUTDOWN_MS = 10_000;

/** Ports to choose from: below those that systems hand out for outgoing connections. */
const PORTS = { min: 10_240, max: 32_767 };

/** How many ports to try before giving up. */
const PORT_ATTEMPTS = 20;

/** A server that lives in a temporary directory. */
const DEFAULT_SETTINGS = {
  max_connections: "200",
  // What survives the end of a process is enough; nothing here must survive that of the machine.
  fsync: "off",
  full_page_writes: "off",
};

/**
 * Starts a PostgreSQL server on a free port of 127.0.0.1, with a random password, in a temporary
 * directory. Any number may be started at the same time.
 *
 * As root it runs under the account `nobody`, since PostgreSQL refuses root. It does not outlive
 * this process by more than a moment, even where that is killed; a caller that ends on a signal
 * calls {@linkcode EmbeddedPostgres.stop | stop}.
 *
 * @throws {RangeError} If there are no binaries for this platform.
 * @throws {ServerStartError} If the server does not start.
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions = {},
): Promise<EmbeddedPostgres> {
  const account = await postgresAccount();
  const name = `queen-mesh-postgres-${randomBytes(12).toString("hex")}`;
  const directory = join(options.parent ?? tmpdir(), name);
  // Before there is anything to guard, so that nothing is ever made that it does not know of.
  const guard = startGuard(directory);
  try {
    await mkdir(directory, { mode: 0o700 });
    if (account) await chown(directory, account.uid, account.gid);
    const executables = await copyBinaries(join(directory, "native"));
    const password = randomBytes(18).toString("base64url");
    await initialize({ directory, executables, account, password });
    const server = new EmbeddedServer(
      { directory, executables, account, password },
      guard,
      options,
    );
    await server.startOnFreePort();
    return server;
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    await guard.dismiss();
    throw error;
  }
}

interface Installation {
  readonly directory: string;
  readonly executables: string;
  readonly account: Account | undefined;
  readonly password: string;
}

class EmbeddedServer implements EmbeddedPostgres {
  readonly #installation: Installation;
  readonly #guard: Guard;
  readonly #options: EmbeddedPostgresOptions;
  #process: ServerProcess | undefined;
  #port = 0;
  #stopping: Promise<void> | undefined;

  constructor(installation: Installation, guard: Guard, options: EmbeddedPostgresOptions) {
    this.#installation = installation;
    this.#guard = guard;
    this.#options = options;
  }

  get url(): string {
    return `postgres://postgres:${this.#installation.password}@127.0.0.1:${this.#port}/postgres`;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** The server itself is the judge of whether a port is free, so no other can take it between. */
  async startOnFreePort(): Promise<void> {
    for (let attempt = 1;; attempt++) {
      this.#port = randomInt(PORTS.min, PORTS.max + 1);
      try {
        return await this.restart();
      } catch (error) {
        const taken = error instanceof ServerStartError && error.output.includes("could not bind");
        if (!taken || attempt === PORT_ATTEMPTS) throw error;
      }
    }
  }

  async restart(): Promise<void> {
    if (this.#process) return;
    const { directory, executables, account } = this.#installation;
    const settings = {
      ...DEFAULT_SETTINGS,
      ...this.#options.settings,
      listen_addresses: "127.0.0.1",
      port: String(this.#port),
      unix_socket_directories: "",
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const server = await startServer({
      program: join(executables, "postgres"),
      args: ["-D", join(directory, "data"), ...args],
      account,
    });
    this.#process = server;
    this.#guard.watch(server.pid);
    server.ended.then(() => {
      if (this.#process !== server) return;
      this.#process = undefined;
      this.#guard.watch(undefined);
    });
  }

  async crash(): Promise<void> {
    const server = this.#process;
    if (!server) return;
    server.end({ immediately: true });
    await server.ended;
  }

  stop(): Promise<void> {
    return this.#stopping ??= this.#stop();
  }

  async #stop(): Promise<void> {
    const server = this.#process;
    if (server) {
      const timeout = new AbortController();
      server.end();
      const late = delay(SHUTDOWN_MS, undefined, { signal: timeout.signal })
        .then(() => server.end({ immediately: true }), () => {/* It ended in time. */});
      await server.ended;
      timeout.abort();
      await late;
    }
    await rm(this.#installation.directory, { recursive: true, force: true });
    await this.#guard.dismiss();
  }
}

/** Makes the data directory, with one account that needs the password. */
async function initialize(installation: Installation): Promise<void> {
  const { directory, executables, account, password } = installation;
  const passwordFile = join(directory, "password");
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (account) await chown(passwordFile, account.uid, account.gid);
  await runToEnd({
    program: join(executables, "initdb"),
    args: [
      `--pgdata=${join(directory, "data")}`,
      "--username=postgres",
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale=C",
      "--no-sync",
      "--no-instructions",
    ],
    account,
  });
  await rm(passwordFile);
}
