import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../embedded/embedded_postgres.ts";
import { systemClock } from "../../runtime/system.ts";
import { pauseServer } from "../../testing/paused_server.ts";
import { Pool } from "./pool.ts";
import { StoreUnavailableError } from "./store.ts";

// These tests hang the server and cut its sessions off: it is always one of their own.
let server: EmbeddedPostgres;
let sql: postgres.Sql;
Deno.test.beforeAll(async () => {
  server = await startEmbeddedPostgres();
  sql = connect();
});
Deno.test.afterAll(async () => {
  await sql.end({ timeout: 1 });
  await server.stop();
});

function connect(): postgres.Sql {
  return postgres(server.url, { max: 3, max_lifetime: null, onnotice: () => {} });
}

async function withPool(
  work: (pool: Pool) => Promise<void>,
  { url = server.url, size = 3, timeoutMs = 10_000 }: {
    url?: string;
    size?: number;
    timeoutMs?: number;
  } = {},
): Promise<void> {
  const pool = new Pool({ url, size, timeoutMs, clock: systemClock });
  try {
    await work(pool);
  } finally {
    await pool.close();
  }
}

function one(pool: Pool): Promise<unknown> {
  return pool.query("select 1 as one", []).then(([row]) => row!["one"]);
}

async function isUnavailable(call: Promise<unknown>): Promise<StoreUnavailableError> {
  const error = await call.then(() => assert.fail("it was available"), (reason) => reason);
  assert.ok(error instanceof StoreUnavailableError, String(error));
  return error;
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = AbortSignal.timeout(20_000);
  while (!await holds()) {
    if (deadline.aborted) assert.fail(`not within 20 s: ${what}`);
    await delay(5);
  }
}

/** Whether a statement with that in its text waits for a lock. */
function isLocked(text: string): Promise<boolean> {
  return sql`
    select from pg_stat_activity
      where wait_event_type = 'Lock' and query like ${`%${text}%`} and pid <> pg_backend_pid()
  `.then((rows) => rows.length > 0);
}

Deno.test("more calls than connections are served in their order", async () => {
  await withPool(async (pool) => {
    const order: number[] = [];
    await Promise.all(Array.from({ length: 20 }, async (_, index) => {
      const [row] = await pool.query("select $1::text as text", [String(index)]);
      assert.equal(row!["text"], String(index));
      order.push(index);
    }));
    assert.deepEqual(order, Array.from({ length: 20 }, (_, index) => index));
    const [used] = await sql`
      select count(*)::int as n from pg_stat_activity where application_name = 'queen-mesh'`;
    assert.equal(used!["n"], 1);
  }, { size: 1 });
});

Deno.test("a statement that is wrong fails as such, and its connection serves on", async () => {
  await withPool(async (pool) => {
    await assert.rejects(pool.query("select 1 / 0", []), { code: "22012" });
    await assert.rejects(pool.query("select * from nowhere", []), { code: "42P01" });
    const pid = () => pool.query("select pg_backend_pid() as pid", []);
    assert.deepEqual(await pid(), await pid());
  }, { size: 1 });
});

Deno.test("a deadlock's victim is tried again, a few times and no more", async () => {
  await sql.unsafe(`
    create sequence attempt;
    create function flaky(p_attempts int, p_state text) returns bigint language plpgsql as $$
    begin
      if nextval('attempt') < p_attempts then
        raise exception 'attempt %', currval('attempt') using errcode = p_state;
      end if;
      return currval('attempt');
    end $$`);
  await withPool(async (pool) => {
    const call = async (attempts: number, state: string) => {
      await sql`alter sequence attempt restart`;
      const [row] = await pool.query("select flaky($1::integer, $2::text) as n", [
        String(attempts),
        state,
      ]);
      return Number(row!["n"]);
    };
    assert.equal(await call(3, "40P01"), 3);
    assert.equal(await call(2, "40001"), 2);
    await isUnavailable(call(100, "40P01"));
    const [tried] = await sql`select last_value::int as n from attempt`;
    assert.ok(tried!["n"] > 3 && tried!["n"] < 20, `${tried!["n"]} attempts`);
    await assert.rejects(call(3, "23505"), { code: "23505" });
    const [once] = await sql`select last_value::int as n from attempt`;
    assert.equal(once!["n"], 1);
  });
});

Deno.test("a server that is down is unavailable, and is found again when it is back", async () => {
  const own = await startEmbeddedPostgres();
  try {
    await withPool(async (pool) => {
      assert.equal(await one(pool), 1);
      await own.crash();
      for (let call = 0; call < 5; call++) await isUnavailable(one(pool));
      await own.restart();
      assert.equal(await one(pool), 1);
    }, { url: own.url });
  } finally {
    await own.stop();
  }
});

Deno.test("a server that goes down again and again under load fails nothing but calls", async () => {
  const own = await startEmbeddedPostgres();
  try {
    await withPool(async (pool) => {
      const done = new AbortController();
      let served = 0;
      const call = async (index: number) => {
        while (!done.signal.aborted) {
          const called = index % 2
            ? one(pool)
            : pool.transaction(async (send) => [await send("select 1"), await send("select 2")]);
          await called.then(() => served++, (error) => {
            assert.ok(error instanceof StoreUnavailableError, String(error));
          });
          await delay(1);
        }
      };
      const calls = Array.from({ length: 12 }, (_, index) => call(index));
      for (let round = 0; round < 6; round++) {
        const before = served;
        await until("calls are served", () => Promise.resolve(served > before + 20));
        await own.crash();
        await own.restart();
      }
      done.abort();
      await Promise.all(calls);
    }, { url: own.url, size: 6 });
  } finally {
    await own.stop();
  }
});

Deno.test("a statement may be given a multiple of the timeout, and the next has the usual one", async () => {
  await withPool(async (pool) => {
    // Longer than the usual timeout, both the server's and the pool's.
    const text = "select pg_sleep(1.2), current_setting('statement_timeout') as limit";
    const [long] = await pool.query(text, [], { timeouts: 10 });
    assert.equal(long!["limit"], "8s");
    const [usual] = await pool.query("select current_setting('statement_timeout') as limit", []);
    assert.equal(usual!["limit"], "800ms");
    await isUnavailable(pool.query("select pg_sleep(60)", [], { timeouts: 2 }));
  }, { size: 1, timeoutMs: 1000 });
});

Deno.test("a transaction is all or nothing", async () => {
  await sql`create table whole (id int primary key)`;
  await withPool(async (pool) => {
    const failed = pool.transaction(async (send) => {
      await send("insert into whole values (1)");
      await send("insert into whole values ($1::integer)", ["1"]);
    });
    await assert.rejects(failed, { code: "23505" });
    assert.equal((await sql`select from whole`).length, 0);
    await pool.transaction((send) =>
      send("insert into whole values (1); insert into whole values (2)")
    );
    assert.equal((await sql`select from whole`).length, 2);
    const cut = isUnavailable(pool.transaction(async (send) => {
      await send("delete from whole");
      const [row] = await send("select pg_backend_pid() as pid");
      await sql`select pg_terminate_backend(${row!["pid"] as number})`;
      await send("delete from whole");
    }));
    await cut;
    assert.equal((await sql`select from whole`).length, 2);
  });
});

Deno.test("a server that hangs ends no call late, and is found again when it goes on", async () => {
  await sql.end({ timeout: 1 });
  await withPool(async (pool) => {
    await Promise.all([one(pool), one(pool), one(pool)]);
    const paused = await pauseServer(server.pid!);
    try {
      // More than there are connections: some wait for one, some meet a hung one, some connect.
      for (let round = 0; round < 2; round++) {
        await Promise.all(Array.from({ length: 6 }, () => isUnavailable(one(pool))));
      }
    } finally {
      paused.resume();
    }
    await until("a call succeeds", () => one(pool).then(() => true, () => false));
  }, { timeoutMs: 1000 });
  sql = connect();
  // The connections that were given up are closed once the server sees it.
  await until("the connections that were given up are closed", async () => {
    const rows = await sql`select from pg_stat_activity where application_name = 'queen-mesh'`;
    return rows.length === 0;
  });
});

Deno.test("a statement that waits too long is stopped by the server, and leaves nothing", async () => {
  await sql`create table waited (id int primary key)`;
  const holder = await sql.reserve();
  await holder`begin`;
  await holder`insert into waited values (1)`;
  await withPool(async (pool) => {
    const error = await isUnavailable(pool.query("insert into waited values (1)", []));
    assert.match(error.message, /lock timeout|statement timeout/);
    await holder`rollback`;
    holder.release();
    assert.equal(await one(pool), 1);
    assert.equal((await sql`select from waited`).length, 0);
  }, { timeoutMs: 1000 });
});

Deno.test("a call that comes too late to a connection does not break it", async () => {
  await withPool(async (pool) => {
    const pid = () => pool.query("select pg_backend_pid() as pid", []);
    const before = await pid();
    // The server stops the first one after 0.8 s. The second one has 0.2 s left and is given up
    // while it runs, the third one never gets the connection.
    const [first, second, third] = await Promise.all(
      [1, 2, 3].map(() => isUnavailable(pool.query("select pg_sleep(30)", []))),
    );
    assert.match(first!.message, /statement timeout/);
    assert.match(second!.message, /gave no answer in 1000 ms/);
    assert.match(third!.message, /All 1 connections to PostgreSQL were busy/);
    await until("the connection is free again", () => pid().then(() => true, () => false));
    assert.deepEqual(await pid(), before);
  }, { size: 1, timeoutMs: 1000 });
});

Deno.test("a connection that is cut in the middle leaves the outcome unknown", async () => {
  const holder = await sql.reserve();
  await holder`begin`;
  await holder`create table cut (id int)`;
  await withPool(async (pool) => {
    const call = isUnavailable(pool.query("create table cut (id int)", []));
    await until("the call waits", () => isLocked("create table cut"));
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'queen-mesh'`;
    await call;
    assert.equal(await one(pool), 1);
  });
  await holder`rollback`;
  holder.release();
});

Deno.test("a server that became read-only is unavailable until it is not", async () => {
  await sql`create table written (id int)`;
  const [row] = await sql`select current_database() as name`;
  await sql.unsafe(`alter database ${row!["name"]} set default_transaction_read_only = on`);
  await withPool(async (pool) => {
    const write = () => pool.query("insert into written values (1)", []);
    await isUnavailable(write());
    const writer = postgres(server.url, {
      max: 1,
      connection: { default_transaction_read_only: false } as Record<string, boolean>,
    });
    await writer.unsafe("begin read write");
    await writer.unsafe(`alter database ${row!["name"]} reset default_transaction_read_only`);
    await writer.unsafe("commit");
    await writer.end();
    await write();
  });
});

Deno.test("a closed pool finishes what is under way and takes nothing new", async () => {
  const holder = await sql.reserve();
  await holder`begin`;
  await holder`select pg_advisory_xact_lock(7)`;
  await withPool(async (pool) => {
    const running = pool.query("select pg_advisory_xact_lock(7), 'done' as text", []);
    await until("the call waits", () => isLocked("advisory_xact_lock(7), 'done'"));
    const waiting = isUnavailable(one(pool));
    const closed = pool.close();
    await waiting;
    await isUnavailable(one(pool));
    await holder`commit`;
    assert.equal((await running)[0]!["text"], "done");
    await closed;
  }, { size: 1 });
  holder.release();
});
