import assert from "node:assert/strict";
import { abortable } from "./abortable.ts";
import { countListeners } from "./testing/signal.ts";

Deno.test("abortable settles as the work does and leaves no listener", async () => {
  const { signal } = new AbortController();
  const listeners = countListeners(signal);
  assert.equal(await abortable(Promise.resolve(7), signal), 7);
  await assert.rejects(abortable(Promise.reject(new Error("broken")), signal), {
    message: "broken",
  });
  assert.equal(listeners(), 0);
});

Deno.test("abortable rejects with the signal's reason while the work goes on", async () => {
  const controller = new AbortController();
  const waiting = abortable(new Promise(() => {}), controller.signal);
  controller.abort(new Error("given up"));
  await assert.rejects(waiting, { message: "given up" });
});

Deno.test("abortable rejects at once where the signal has aborted", async () => {
  const signal = AbortSignal.abort(new Error("too late"));
  await assert.rejects(abortable(new Promise(() => {}), signal), { message: "too late" });
});

Deno.test("what comes after the abort is discarded, once", async () => {
  const controller = new AbortController();
  const discarded: string[] = [];
  let yieldLate!: (value: string) => void;
  const work = new Promise<string>((resolve) => yieldLate = resolve);
  const waiting = abortable(work, controller.signal, (late) => discarded.push(late));
  controller.abort(new Error("given up"));
  await assert.rejects(waiting);
  yieldLate("a connection");
  await work;
  assert.deepEqual(discarded, ["a connection"]);
});

Deno.test("what was yielded in time is not discarded by a later abort", async () => {
  const controller = new AbortController();
  const value = await abortable(
    Promise.resolve("a connection"),
    controller.signal,
    () => assert.fail("it was discarded"),
  );
  controller.abort();
  assert.equal(value, "a connection");
});
