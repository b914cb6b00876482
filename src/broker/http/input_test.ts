import assert from "node:assert/strict";
import { nameFault } from "./input.ts";

for (
  const [what, name, fault] of [
    ["an ordinary name", "orders", undefined],
    ["a name with spaces and signs", " a/b:c ü😀 ", undefined],
    ["512 bytes", "x".repeat(512), undefined],
    ["513 bytes", "x".repeat(513), "must be at most 512 bytes of UTF-8"],
    ["256 characters of two bytes", "ü".repeat(256), undefined],
    ["257 characters of two bytes", "ü".repeat(257), "must be at most 512 bytes of UTF-8"],
    ["171 characters of three bytes", "€".repeat(171), "must be at most 512 bytes of UTF-8"],
    ["nothing", "", "must not be empty"],
    ["a newline", "a\nb", "must hold no control characters"],
    ["DEL", "\u007f", "must hold no control characters"],
    ["a C1 control character", "\u0085", "must hold no control characters"],
    ["a lone surrogate", "\ud83d", "must hold no control characters"],
  ] as const
) {
  Deno.test(`${what} ${fault === undefined ? "is" : "is not"} a name`, () => {
    assert.equal(nameFault(name), fault);
  });
}
