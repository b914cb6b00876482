/**
 * Deadlines for tests.
 *
 * @module
 */

import assert from "node:assert/strict";

/** Names a test and gives its body. */
export type DefineTest = (name: string, body: () => Promise<void>) => void;

/** Long enough for the slowest machine; a test that works never waits for it. */
const DEADLINE_MS = 20_000;

/** Settles as `work` does, or rejects, naming `what`, once the deadline is over. */
export function within<T>(work: Promise<T>, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout>;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`Not within ${DEADLINE_MS} ms: ${what}`)),
      DEADLINE_MS,
    );
  });
  return Promise.race([work, deadline]).finally(() => clearTimeout(timer));
}

/**
 * Resolves once `work` rejects as `expected` says; fails where it yields something, and where the
 * deadline is over.
 */
export async function rejects(
  work: Promise<unknown>,
  what: string,
  expected?: { readonly code?: string; readonly message?: string },
): Promise<void> {
  await within(work.then(() => {}, () => {}), what);
  await (expected === undefined ? assert.rejects(work) : assert.rejects(work, expected));
}

/** Resolves to true where `work` does not settle for `ms` milliseconds. */
export function staysPending(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout>;
  const pending = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(true), ms);
  });
  const settled = work.then(() => false, () => false);
  return Promise.race([settled, pending]).finally(() => clearTimeout(timer));
}
