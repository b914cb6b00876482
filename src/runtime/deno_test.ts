import { denoRuntime } from "./deno.ts";
import { networkSuite } from "./testing/network_suite.ts";

networkSuite(denoRuntime(), (name, body) => Deno.test(`Deno's network: ${name}`, body));
