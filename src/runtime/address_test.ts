import assert from "node:assert/strict";
import { bindEveryAddress, plainIp } from "./address.ts";

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
