import assert from "node:assert/strict";
import { check } from "./check.ts";
import type { Setting } from "./history.ts";
import { SETTING, ToldHistory } from "./testing/told_history.ts";
import type { Rule } from "./violation.ts";

/** The rules that a history breaks. */
function broken(history: ToldHistory, setting: Setting = SETTING): Rule[] {
  return [...new Set(check(history.events, setting).map(({ rule }) => rule))];
}

function sound(history: ToldHistory, setting: Setting = SETTING): void {
  assert.deepEqual(check(history.events, setting), []);
}

const told = () => new ToldHistory();

/** A group of its own, so that a test tells of one alone. */
const ALONE: Setting = { ...SETTING, groups: new Map([["g", "all"]]) };

const LATE: Setting = { ...SETTING, groups: new Map([["g", "all"], ["n", "new"]]) };

Deno.test("a history in which all goes well breaks no rule", () => {
  sound(
    told().push("1 2 3").consume("g", "1 2").consume("h", "1").consume("g", "3")
      .consume("h", "2 3"),
  );
});

Deno.test("trouble is trouble", () => {
  assert.deepEqual(broken(told().report("A is gone")), ["no trouble"]);
});

Deno.test("a push may be repeated after a lost one and be a duplicate then, and never fail", () => {
  const repeated = told();
  repeated.lose(repeated.sendPush("1"));
  sound(repeated.push("1", { status: "duplicate" }).consume("g", "1").consume("h", "1"));
  const first = told().push("1", { status: "duplicate" }).consume("g", "1").consume("h", "1");
  assert.deepEqual(broken(first), ["pushes are taken"]);
  assert.deepEqual(broken(told().push("1", { status: "failed" })), ["pushes are taken"]);
});

Deno.test("while PostgreSQL is away only pushes are answered, and as buffered", () => {
  const history = told().push("1");
  const parked = history.send({ kind: "pop", group: "g" });
  history.outage(true).answerPop(parked, "", "").push("2", { status: "buffered" });
  history.lose(history.send({ kind: "pop", group: "g" }));
  sound(history.outage(false).consume("g", "1 2"), ALONE);
  assert.deepEqual(broken(told().outage(true).push("1").outage(false).consume("g", "1"), ALONE), [
    "outages are told",
  ]);
  assert.deepEqual(broken(told().outage(true).pop("g", "", "").outage(false), ALONE), [
    "outages are told",
  ]);
});

Deno.test("what nobody pushed, or not there, is invented", () => {
  const elsewhere = told().push("1").push("2", { partition: "q" });
  elsewhere.consume("g", "1 2").consume("h", "1 2");
  assert(broken(elsewhere, ALONE).includes("nothing is invented"));
  assert(broken(told().push("1").consume("g", "1 x"), ALONE).includes("nothing is invented"));
});

Deno.test("a push that was never answered may be stored, or not", () => {
  const stored = told();
  stored.lose(stored.sendPush("1"));
  sound(stored.consume("g", "1"), ALONE);
  const lost = told();
  lost.lose(lost.sendPush("1"));
  sound(lost, ALONE);
});

Deno.test("a transaction with two ids is stored twice", () => {
  const history = told().push("1").consume("g", "1").pop("h", "l", "1", { ids: "again" });
  assert.deepEqual(broken(history.ack("l", "1")), ["stored once"]);
});

Deno.test("groups that see different orders are found", () => {
  const history = told();
  const [a, b] = [history.sendPush("1"), history.sendPush("2")];
  history.answerPush(a, "queued").answerPush(b, "queued");
  history.consume("g", "1 2").consume("h", "2 1");
  assert.deepEqual(broken(history), ["one order"]);
});

Deno.test("what was stored before another message was sent comes before it", () => {
  const history = told().push("1").push("2", { replica: "B" }).consume("g", "2 1");
  assert.deepEqual(broken(history, ALONE), ["push order"]);
});

Deno.test("pushes that overlap may come in either order", () => {
  const history = told();
  const [a, b] = [history.sendPush("1"), history.sendPush("2")];
  sound(history.answerPush(a, "queued").answerPush(b, "queued").consume("g", "2 1"), ALONE);
});

Deno.test("the messages of one push keep their order", () => {
  assert.deepEqual(broken(told().push("1 2").consume("g", "2 1"), ALONE), ["push order"]);
  const repeated = told();
  repeated.lose(repeated.sendPush("1 2"));
  assert.deepEqual(broken(repeated.push("1 2").consume("g", "2 1"), ALONE), ["push order"]);
});

Deno.test("what was buffered comes before what was sent to the same replica later", () => {
  const same = told().push("1", { status: "buffered" }).push("2").consume("g", "2 1");
  assert.deepEqual(broken(same, ALONE), ["push order"]);
  const other = told().push("1", { status: "buffered" }).push("2", { replica: "B" });
  sound(other.consume("g", "2 1"), ALONE);
  const moved = told().push("1", { status: "buffered" });
  moved.lose(moved.sendPush("2", { replica: "B" }));
  sound(moved.push("2", { status: "duplicate" }).consume("g", "2 1"), ALONE);
});

Deno.test("a batch of what is leased is found", () => {
  const history = told().push("1").pop("g", "l", "1").pass(500).pop("g", "m", "1").ack("m", "1");
  assert.deepEqual(broken(history, ALONE), ["one lease at a time"]);
});

Deno.test("a batch behind what is leased is found", () => {
  const history = told().push("1 2").pop("g", "l", "1").pass(10).pop("g", "m", "2")
    .ack("m", "2").ack("l", "1");
  const rules = broken(history, ALONE);
  assert(rules.includes("one lease at a time"), String(rules));
  assert(rules.includes("from the first unfinished"), String(rules));
});

Deno.test("a lease that has run out is given again from its start", () => {
  const history = told().push("1 2").pop("g", "l", "1 2").ack("l", "1").pass(1000);
  sound(history.consume("g", "2"), ALONE);
});

Deno.test("a parked pop counts from when its messages were pushed", () => {
  const history = told();
  const parked = history.send({ kind: "pop", group: "g" });
  history.pass(5000).push("1").answerPop(parked, "l", "1").pass(500);
  assert.deepEqual(broken(history.pop("g", "m", "1").ack("m", "1"), ALONE), [
    "one lease at a time",
  ]);
});

Deno.test("an answer that takes longer than its lease is no evidence", () => {
  const history = told().push("1");
  const slow = history.send({ kind: "pop", group: "g" });
  history.pass(1500).consume("g", "1");
  sound(history.answerPop(slow, "l", "1"), ALONE);
});

Deno.test("a redelivery in the middle of what is unfinished is found", () => {
  const history = told().push("1 2 3").pop("g", "l", "1 2 3").ack("l", "1").pass(1000);
  assert(broken(history.consume("g", "3"), ALONE).includes("from the first unfinished"));
});

Deno.test("a gap inside a batch is found", () => {
  const history = told().push("1 2 3").consume("h", "1 2 3").consume("g", "1 3");
  assert(broken(history).includes("one order"));
  const again = told().push("1 2 3").pop("g", "l", "1 2 3").ack("l", ["1", "retry"]);
  assert(broken(again.consume("g", "1 3"), ALONE).includes("from the first unfinished"));
});

Deno.test("what was completed or dead-lettered never comes again", () => {
  const completed = told().push("1 2").pop("g", "l", "1 2").ack("l", "1").pass(1000);
  assert.deepEqual(broken(completed.consume("g", "1 2"), ALONE), ["done is done"]);
  const dead = told().push("1 2").pop("g", "l", "1 2").ack("l", ["2", "dlq"]).pass(1000);
  assert.deepEqual(broken(dead.consume("g", "1 2"), ALONE), ["done is done"]);
});

Deno.test("what is above a message that failed comes again, dead letters aside", () => {
  const history = told().push("1 2 3 4").pop("g", "l", "1 2 3 4");
  history.ack("l", "1", ["2", "failed"], ["3", "dlq"], "4").pass(100);
  sound(history.consume("g", "2 4"), ALONE);
});

Deno.test("a failure that was one too many is done, and the rest of its batch is open", () => {
  const history = told().push("1 2").pop("g", "l", "1 2");
  history.answerAck(history.sendAck("l", ["1", "failed"]), { dlq: true }).ack("l", "2");
  sound(history, ALONE);
});

Deno.test("a message that waits to be retried does not come before its time, a free one does", () => {
  const early = told().push("1").pop("g", "l", "1").ack("l", ["1", "failed"]).pass(50);
  assert.deepEqual(broken(early.consume("g", "1"), ALONE), ["one lease at a time"]);
  const free = told().push("1").pop("g", "l", "1").ack("l", ["1", "retry"]);
  sound(free.consume("g", "1"), ALONE);
});

Deno.test("nothing is delivered past a message that waits to be retried", () => {
  const history = told().push("1 2").pop("g", "l", "1").ack("l", ["1", "failed"]);
  const rules = broken(history.consume("g", "2").pass(100).consume("g", "1"), ALONE);
  assert(rules.includes("from the first unfinished"), String(rules));
});

Deno.test("an ack under a lease that has run out moves nothing", () => {
  const late = told().push("1").pop("g", "l", "1").pass(1100).ack("l", "1");
  assert.deepEqual(broken(late, ALONE), ["lost leases move nothing"]);
  const refused = told().push("1").pop("g", "l", "1").pass(1100).refuseAck("l", "1");
  sound(refused.consume("g", "1"), ALONE);
});

Deno.test("an ack under a lease that another took over or that was released moves nothing", () => {
  const taken = told().push("1").pop("g", "l", "1").pass(998).pop("g", "m", "1").ack("l", "1");
  assert(broken(taken, ALONE).includes("lost leases move nothing"));
  const released = told().push("1").pop("g", "l", "1").ack("l", "1").ack("l", "1");
  assert.deepEqual(broken(released, ALONE), ["lost leases move nothing"]);
});

Deno.test("an ack under a lease that holds is not refused", () => {
  const history = told().push("1").pop("g", "l", "1").refuseAck("l", "1").ack("l", "1");
  assert.deepEqual(broken(history, ALONE), ["held leases count"]);
});

Deno.test("an extension makes a lease hold longer", () => {
  const early = told().push("1").pop("g", "l", "1").extend("l", 3).pass(2000);
  assert.deepEqual(broken(early.consume("g", "1"), ALONE), ["one lease at a time"]);
  const late = told().push("1").pop("g", "l", "1").extend("l", 3).pass(2000).ack("l", "1");
  sound(late, ALONE);
  const over = told().push("1").pop("g", "l", "1").extend("l", 3).pass(3100).ack("l", "1");
  assert.deepEqual(broken(over, ALONE), ["lost leases move nothing"]);
  const refused = told().push("1").pop("g", "l", "1").extend("l", 3, false).pass(1100);
  assert.deepEqual(broken(refused.ack("l", "1"), ALONE), ["lost leases move nothing"]);
});

Deno.test("an ack whose answer was lost counts or does not, all of it", () => {
  for (const next of ["1 2 3", "3"]) {
    const history = told().push("1 2 3").pop("g", "l", "1 2 3");
    history.lose(history.sendAck("l", "1", "2")).pass(1000);
    sound(history.consume("g", next), ALONE);
  }
  const half = told().push("1 2 3").pop("g", "l", "1 2 3");
  half.lose(half.sendAck("l", "1", "2")).pass(1000);
  assert(broken(half.consume("g", "2 3"), ALONE).length > 0);
});

Deno.test("a lost failure was given back, or dead-lettered, or nothing", () => {
  for (const next of ["1", "2"]) {
    const history = told().push("1 2").pop("g", "l", "1");
    history.lose(history.sendAck("l", ["1", "failed"])).pass(1000).consume("g", next);
    sound(next === "1" ? history.consume("g", "2") : history, ALONE);
  }
});

Deno.test("a repeated ack may be refused once its lost one counts", () => {
  const history = told().push("1").pop("g", "l", "1");
  history.lose(history.sendAck("l", "1"));
  sound(history.refuseAck("l", "1"), ALONE);
});

Deno.test("what was accepted and is never delivered is lost", () => {
  assert.deepEqual(broken(told().push("1").consume("g", "1")), ["nothing is lost"]);
  const buffered = told().push("1", { status: "buffered" });
  assert.deepEqual(broken(buffered, ALONE), ["nothing is lost"]);
  assert.deepEqual(broken(told().push("1 2").consume("g", "1"), ALONE), ["nothing is lost"]);
});

Deno.test("what is delivered and never done is not finished", () => {
  assert.deepEqual(broken(told().push("1").pop("g", "l", "1"), ALONE), ["nothing is lost"]);
});

Deno.test("a new group gets what is pushed after its first pop, and nothing from before", () => {
  const history = told().push("1").pop("n", "", "").push("2").consume("g", "1 2");
  sound(told().push("1").pop("n", "", "").push("2").consume("g", "1 2").consume("n", "2"), LATE);
  assert.deepEqual(broken(history, LATE), ["new is that moment"]);
  const old = told().push("1").pop("n", "", "").push("2").consume("g", "1 2").consume("n", "1 2");
  assert.deepEqual(broken(old, LATE), ["new is that moment"]);
});

Deno.test("a new group may get what was buffered before its first pop, or not", () => {
  for (const first of ["1 2", "2"]) {
    const history = told().push("1", { status: "buffered" }).pop("n", "", "").push("2");
    sound(history.consume("g", "1 2").consume("n", first), LATE);
  }
});

Deno.test("a new group gets everything from its start on", () => {
  const history = told().pop("n", "", "").push("1 2 3").consume("g", "1 2 3");
  assert.deepEqual(broken(history.consume("n", "2 3"), LATE), ["new is that moment"]);
  const hole = told().pop("n", "", "").push("1 2 3").consume("g", "1 2 3").consume("n", "1");
  assert(broken(hole.consume("n", "3"), LATE).includes("one order"));
});
