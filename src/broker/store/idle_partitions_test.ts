import assert from "node:assert/strict";
import { TENANT, testItem, type TestStore, useTestStores } from "../../testing/test_store.ts";

const openStore = useTestStores();

/** What a B-tree and its neighbours may grow by when it holds a hundred times as much, in pages. */
const GROWTH_PAGES = 10;

/** The partition that is busy. */
const BUSY = "busy";

/** Makes a queue of partitions that all have been emptied. */
async function makeIdle({ store, sql }: TestStore, queue: string, count: number): Promise<void> {
  const items = Array.from(
    { length: count },
    (_, i) => testItem(`${i}`, { queue, partition: i === 0 ? BUSY : `idle-${i}` }),
  );
  await store.push(TENANT, items);
  const query = { queue, batch: count, partitions: count, autoAck: true };
  while ((await store.pop(TENANT, query)).batch !== undefined);
  await sql.unsafe("vacuum");
}

/** How many pages PostgreSQL looks at for what `statement` asks, once everything is planned. */
async function pagesOf(
  { store, sql }: TestStore,
  queue: string,
  statement: string,
): Promise<number> {
  const connection = await sql.reserve();
  try {
    let pages = 0;
    // The first times on a connection are for the plans.
    for (let i = 0; i < 4; i++) {
      await store.push(TENANT, [testItem(`busy-${i}-${crypto.randomUUID()}`, {
        queue,
        partition: BUSY,
      })]);
      const [row] = await connection.unsafe(
        `explain (analyze, buffers, format json) ${statement}`,
      );
      const { Plan: plan } = row!["QUERY PLAN"][0];
      assert(plan["Actual Rows"] > 0, "it found nothing");
      pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    }
    return pages;
  } finally {
    connection.release();
  }
}

for (
  const [what, statement] of [
    [
      "a pop that tries the busy partition first",
      (schema: string, queue: string) =>
        `select * from ${schema}.pop('${TENANT}', '${queue}', null, '{${BUSY}}',
          '__QUEUE_MODE__', 10, 1000000, 1, null, true)`,
    ],
    [
      "a pop that looks for it",
      (schema: string, queue: string) =>
        `select * from ${schema}.pop('${TENANT}', '${queue}', null, '{}',
          '__QUEUE_MODE__', 10, 1000000, 1, null, true)`,
    ],
    [
      "the seeding of a ring",
      (schema: string, queue: string) =>
        `select * from ${schema}.candidates('${TENANT}', '${queue}', '__QUEUE_MODE__', 1000)`,
    ],
  ] as const
) {
  Deno.test(`${what} looks at no more pages where there are more idle partitions`, async () => {
    await using opened = await openStore();
    await makeIdle(opened, "few", 20);
    await makeIdle(opened, "many", 2000);
    const few = await pagesOf(opened, "few", statement(opened.schema, "few"));
    const many = await pagesOf(opened, "many", statement(opened.schema, "many"));
    assert(many <= few + GROWTH_PAGES, `${few} pages with 20 partitions, ${many} with 2000`);
  });
}
