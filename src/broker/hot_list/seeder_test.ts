import assert from "node:assert/strict";
import { settle } from "../../simulation/virtual_clock.ts";
import { MemoryLogger } from "../testing/memory_logger.ts";
import { Budget } from "./budget.ts";
import { CandidateRing } from "./ring.ts";
import { type Seedable, Seeder, SEEDINGS_MAX } from "./seeder.ts";

function bench() {
  const started: string[] = [];
  const answers: (() => void)[] = [];
  const seeder = new Seeder({
    logger: new MemoryLogger(),
    load: ({ queue }) => {
      started.push(queue);
      return new Promise((resolve) => answers.push(() => resolve(["p"])));
    },
  });
  const rings: Seedable[] = Array.from({ length: SEEDINGS_MAX + 3 }, (_, i) => ({
    key: { tenant: "t", queue: `q${i}`, group: "g" },
    ring: new CandidateRing(new Budget(1e9)),
  }));
  rings.forEach((ring) => seeder.request(ring));
  /** Answers all that is asked, also what is asked thereupon. */
  const answerAll = async () => {
    while (answers.length > 0) {
      answers.splice(0).forEach((answer) => answer());
      await settle();
    }
  };
  return { seeder, started, rings, answerAll };
}

const BEGUN = Array.from({ length: SEEDINGS_MAX }, (_, i) => `q${i}`);

Deno.test("rings beyond the most wait for their turn, each once however often it is asked for", async () => {
  const { seeder, started, rings, answerAll } = bench();
  seeder.request(rings.at(-1)!);
  assert.deepEqual(started, BEGUN);
  await answerAll();
  assert.deepEqual(started, rings.map(({ key }) => key.queue));
  assert(rings.every(({ ring }) => ring.size === 1));
});

Deno.test("a ring that is forgotten while it waits is not seeded", async () => {
  const { seeder, started, rings, answerAll } = bench();
  seeder.forget(rings[SEEDINGS_MAX]!);
  await answerAll();
  assert.deepEqual(started, [...BEGUN, `q${SEEDINGS_MAX + 1}`, `q${SEEDINGS_MAX + 2}`]);
});

Deno.test("closing begins nothing more", async () => {
  const { seeder, started, answerAll } = bench();
  const closing = seeder.close();
  await answerAll();
  await closing;
  assert.deepEqual(started, BEGUN);
});
