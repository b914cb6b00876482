/**
 * A node of the mesh alone, made of this package's own `Mesh`: what most mutants are planted into.
 * Unmodified it conforms; its capabilities are `mesh` and `notify`.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

import process from "node:process";
import { meshConfigFromEnv } from "../../src/mesh/config.ts";
import { Mesh } from "../../src/mesh/mesh.ts";
import { logger } from "./log.ts";
import type { Plant, Setup, Stats } from "./setup.ts";
import { currentRuntime } from "../../src/cli/platform.ts";

/** Runs a node until SIGTERM. Resolves to its exit code. */
export async function runMeshNode(plant: Plant): Promise<number> {
  const setup = plant({
    env: process.env,
    runtime: await currentRuntime(),
    parts: {},
    meshOptions: (options) => options,
    createMesh: (options, parts) => new Mesh(options, parts),
    stats: (stats) => stats,
    beforeNotified: () => Promise.resolve(),
    store: (store) => store,
  });
  try {
    return await run(setup);
  } catch (error) {
    process.stderr.write(`mesh node: ${(error as Error).message}\n`);
    return 1;
  }
}

async function run(setup: Setup): Promise<number> {
  const { runtime, env } = setup;
  const config = meshConfigFromEnv(env, {
    hostName: "mutant",
    random: runtime.random,
    warn: (message) => logger.warn(message),
  });
  const modes = { maintenance_mode: false, pop_maintenance_mode: false };
  const mesh = setup.createMesh(
    setup.meshOptions({
      runtime,
      config,
      logger,
      onMessage: (message) => {
        if (message.type === "maintenance_mode" || message.type === "pop_maintenance_mode") {
          modes[message.type] = message.enabled;
        }
      },
    }),
    setup.parts,
  );
  const routes: Record<string, () => Stats> = {
    "/health": () => ({ status: "healthy" }),
    "/internal/api/shared-state/stats": () => ({ ...mesh.stats(), ...modes }),
    "/internal/api/inter-instance/stats": () => ({ ...mesh.stats(), ...modes }),
    "/api/v1/system/shared-state": () => ({
      enabled: false,
      reason: "single_node_segments_broker",
      ...modes,
    }),
  };
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://node").pathname;
    const route = routes[path];
    if (request.method === "GET" && route) {
      reply(response, { status: 200, body: setup.stats(route(), path) });
    } else if (request.method === "POST" && path === "/internal/api/notify") {
      notify({ setup, mesh, request, response }).catch((error) => {
        logger.error("a wake could not be sent", { reason: (error as Error).message });
        reply(response, { status: 400, body: { error: (error as Error).message } });
      });
    } else {
      reply(response, { status: 404, body: { error: "no such route" } });
    }
  });
  await mesh.start();
  server.listen(Number(env["PORT"]), env["HOST"] ?? "127.0.0.1");
  await once(server, "listening");
  await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  server.close();
  server.closeAllConnections();
  await mesh.close();
  return 0;
}

async function notify(
  { setup, mesh, request, response }: {
    setup: Setup;
    mesh: Mesh;
    request: IncomingMessage;
    response: ServerResponse;
  },
): Promise<void> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  const { queue, partition } = JSON.parse(Buffer.concat(chunks).toString());
  mesh.broadcast({ type: "message_available", items: [{ queue, partition }] });
  await setup.beforeNotified(mesh);
  reply(response, { status: 200, body: { status: "ok" } });
}

function reply(
  response: ServerResponse,
  { status, body }: { status: number; body: unknown },
): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
