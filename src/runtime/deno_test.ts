import { denoRuntime } from "./deno.ts";
import { meshSuite } from "./testing/mesh_suite.ts";
import { networkSuite } from "./testing/network_suite.ts";

networkSuite(denoRuntime(), (name, body) => Deno.test(`Deno's network: ${name}`, body));
meshSuite(denoRuntime(), (name, body) => Deno.test(`Deno's network: ${name}`, body));
