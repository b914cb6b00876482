import assert from "node:assert/strict";
import { bindEveryAddress, createResolve, plainIp } from "./address.ts";

Deno.test("an IPv4-mapped address is named as plain IPv4, any other as it is", () => {
  assert.equal(plainIp("::ffff:192.0.2.7"), "192.0.2.7");
  assert.equal(plainIp("::FFFF:10.0.0.1"), "10.0.0.1");
  for (const ip of ["192.0.2.7", "::1", "2001:db8::ffff:1", "::ffff:0:1", "fe80::1%eth0"]) {
    assert.equal(plainIp(ip), ip);
  }
});

Deno.test("every address is :: where the system has IPv6", async () => {
  const asked: string[] = [];
  const bound = await bindEveryAddress((hostname) => {
    asked.push(hostname);
    return `bound ${hostname}`;
  });
  assert.equal(bound, "bound ::");
  assert.deepEqual(asked, ["::"]);
});

Deno.test("every address is 0.0.0.0 where the system has no IPv6", async () => {
  for (const code of ["EAFNOSUPPORT", "EADDRNOTAVAIL"]) {
    const bound = await bindEveryAddress((hostname) => {
      if (hostname === "::") throw Object.assign(new Error("no IPv6"), { code });
      return Promise.resolve(hostname);
    });
    assert.equal(bound, "0.0.0.0");
  }
});

Deno.test("a failure that is not about IPv6 is not tried again on IPv4", async () => {
  const asked: string[] = [];
  await assert.rejects(
    bindEveryAddress((hostname) => {
      asked.push(hostname);
      throw Object.assign(new Error("taken"), { code: "EADDRINUSE" });
    }),
    { message: "taken" },
  );
  assert.deepEqual(asked, ["::"]);
});

Deno.test("a look-up that hangs is waited for, not asked again, and once it has ended it is", async () => {
  const asked: { readonly host: string; answer(address: string): void }[] = [];
  const resolve = createResolve((host) =>
    new Promise((done) => asked.push({ host, answer: (address) => done([{ address }]) }))
  );
  const controller = new AbortController();
  const { signal } = new AbortController();
  const givenUp = resolve("a", { signal: controller.signal });
  controller.abort(new Error("given up"));
  await assert.rejects(givenUp, { message: "given up" });
  const joined = resolve("a", { signal });
  const other = resolve("b", { signal });
  assert.deepEqual(asked.map(({ host }) => host), ["a", "b"]);
  asked[0]!.answer("192.0.2.1");
  asked[1]!.answer("192.0.2.2");
  assert.deepEqual(await joined, ["192.0.2.1"]);
  assert.deepEqual(await other, ["192.0.2.2"]);
  const again = resolve("a", { signal });
  asked[2]!.answer("192.0.2.3");
  assert.deepEqual(await again, ["192.0.2.3"]);
});

Deno.test("a look-up that fails is asked again, and a name without an address is an error", async () => {
  let turn = 0;
  const resolve = createResolve(() =>
    turn++ === 0 ? Promise.reject(new Error("no name service")) : Promise.resolve([])
  );
  const { signal } = new AbortController();
  await assert.rejects(resolve("a", { signal }), { message: "no name service" });
  await assert.rejects(resolve("a", { signal }), /Cannot resolve a: it has no address/);
});
