import assert from "node:assert/strict";
import { type Capability, whyUnfit } from "./case.ts";

const has = (...capabilities: Capability[]) => new Set<Capability>(capabilities);

Deno.test("a case that needs nothing and rules nothing out judges any target", () => {
  assert.equal(whyUnfit({}, has()), undefined);
});

Deno.test("a case is unfit for a target without what it needs", () => {
  const needs = ["broker", "tenancy"] as const;
  assert.equal(whyUnfit({ needs }, has("broker")), "the target does not have tenancy");
  assert.equal(whyUnfit({ needs }, has("broker", "tenancy")), undefined);
});

Deno.test("of the capabilities in an inner list one is enough", () => {
  const needs = [["notify", "broker"]] as const;
  assert.equal(whyUnfit({ needs }, has("broker")), undefined);
  assert.equal(whyUnfit({ needs }, has("mesh")), "the target does not have notify or broker");
});

Deno.test("a case is unfit for a target that has what rules it out", () => {
  const lacks = ["broker"] as const;
  assert.equal(whyUnfit({ lacks }, has("mesh", "broker")), "the target has broker");
  assert.equal(whyUnfit({ lacks }, has("mesh")), undefined);
});

Deno.test("what a target does not have is told before what it has", () => {
  const each = { needs: ["notify"], lacks: ["broker"] } as const;
  assert.equal(whyUnfit(each, has("broker")), "the target does not have notify");
});
