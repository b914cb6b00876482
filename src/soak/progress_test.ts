import assert from "node:assert/strict";
import { Progress } from "./progress.ts";

const batch = (...transactions: string[]) => ({
  partition: "p",
  leaseId: "l",
  messages: transactions.map((transaction) => ({ id: transaction, transaction })),
});

const completed = (transaction: string) => ({ transaction, status: "completed" }) as const;

const SUCCESS = { success: true, dlq: false };

Deno.test("a group is drained once it is done with all that was accepted", () => {
  const progress = new Progress(["g"], () => 0);
  progress.notePush(["1", "2", "3"], ["queued", "buffered", "failed"]);
  progress.noteBatch("g", batch("1", "2"));
  progress.noteAck("g", [completed("1")], [SUCCESS]);
  assert.equal(progress.isDrained("g", 1000), false);
  assert.equal(progress.backlog, 1);
  progress.noteAck("g", [completed("2")], [SUCCESS]);
  assert.equal(progress.isDrained("g", 1000), true);
  assert.equal(progress.backlog, 0);
});

Deno.test("a group is not done with what is refused, or above a message that was given back", () => {
  const progress = new Progress(["g"], () => 0);
  progress.notePush(["1", "2", "3"], ["queued", "queued", "queued"]);
  progress.noteAck("g", [completed("1")], [{ success: false, dlq: false }]);
  const items = [{ transaction: "2", status: "failed" } as const, completed("3")];
  progress.noteAck("g", items, [SUCCESS, SUCCESS]);
  assert.deepEqual([...progress.done], [["g", 0]]);
  progress.noteAck("g", items, [{ success: true, dlq: true }, SUCCESS]);
  assert.deepEqual([...progress.done], [["g", 2]]);
  assert.equal(progress.dead, 1);
});

Deno.test("a group that gets nothing for long is drained, and a late one holds nobody up", () => {
  let now = 0;
  const progress = new Progress(["g"], () => now);
  progress.notePush(["1"], ["queued"]);
  progress.noteBatch("late", batch("1"));
  progress.noteBatch("late", batch("1"));
  assert.deepEqual([progress.deliveries, progress.redeliveries], [2, 1]);
  assert.deepEqual([...progress.done], [["g", 0]]);
  now = 1001;
  assert.equal(progress.isDrained("g", 1000), true);
  assert.equal(progress.isDrained("late", 1000), true);
  progress.restartIdleness();
  assert.equal(progress.isDrained("late", 1000), false);
});
