import { listenHttp } from "./http.ts";
import { httpSuite } from "./testing/http_suite.ts";

httpSuite(listenHttp, (name, body) => Deno.test(`HTTP on Deno: ${name}`, body));
