import assert from "node:assert/strict";
import { parseAccount } from "./account.ts";

Deno.test("an account is found in a passwd file by its whole name", () => {
  const passwd = "root:x:0:0:root:/root:/bin/sh\n" +
    "nobody2:x:7:8::/:/bin/false\nnobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n";
  assert.deepEqual(parseAccount(passwd, "nobody"), { uid: 65534, gid: 65533 });
});

Deno.test("an account that is missing is an error that says what to do", () => {
  assert.throws(() => parseAccount("root:x:0:0::/:/bin/sh\n", "nobody"), /as an ordinary user/);
  assert.throws(() => parseAccount("nobody:x:a:b::/:/bin/sh\n", "nobody"), RangeError);
});
